"""Which rules run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.rules import all_rules, did_you_mean, find_rule

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from dsguard.facts.case import Case
    from dsguard.model.rule import Rule


class SelectionError(ValueError):
    """A name in ``--select`` or ``--ignore`` that no rule has; the message suggests one."""


def select(
    selected: Sequence[str] | None,
    ignored: Sequence[str] | None,
    locked: Collection[str] = (),
) -> list[Rule[Case]]:
    """The rules that ``selected`` names (all, where it names none) less those of ``ignored``.

    A name is a slug, a code, the beginning of codes (``DSG2``), a family, or ``all``; several
    may stand in one string, separated by commas. Rules whose slug is ``locked`` always run.

    Raises:
        SelectionError: a name fits no rule, or a locked rule is to be left out by its own name.
    """
    if selected and not _names(selected):
        raise SelectionError("no rule is named; `dsguard rules` lists them")
    wanted = _names(selected) or ["all"]
    unwanted = _names(ignored)
    for name in (*wanted, *unwanted):
        if not any(_fits(rule, name) for rule in all_rules()):
            raise SelectionError(_unknown(name))
    for rule in all_rules():
        if rule.meta.slug in locked and {rule.meta.slug, rule.meta.code} & set(unwanted):
            raise SelectionError(f"{rule.meta.slug} is locked and cannot be left out")
    return [
        rule
        for rule in all_rules()
        if rule.meta.slug in locked
        or (
            any(_fits(rule, name) for name in wanted)
            and not any(_fits(rule, name) for name in unwanted)
        )
    ]


def slug_of(name: str) -> str:
    """The slug of the one rule that a slug or code names.

    Raises:
        SelectionError: there is no such rule.
    """
    rule = find_rule(name)
    if rule is None:
        raise SelectionError(_unknown(name))
    return rule.meta.slug


def _unknown(name: str) -> str:
    return f"no rule is called {name}; {did_you_mean(name)}"


def _names(given: Sequence[str] | None) -> list[str]:
    names = [name.strip() for text in given or () for name in text.split(",") if name.strip()]
    return [name.upper() if name.lower().startswith("dsg") else name for name in names]


def _fits(rule: Rule[Case], name: str) -> bool:
    meta = rule.meta
    if name in ("all", meta.slug, meta.family):
        return True
    return name.startswith("DSG") and len(name) > 3 and meta.code.startswith(name)
