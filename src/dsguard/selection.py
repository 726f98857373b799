"""Which rules run."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from dsguard.facts.case import Case
from dsguard.model.rule import Rule
from dsguard.rules import all_rules


class SelectionError(ValueError):
    """A name in ``--select`` or ``--ignore`` that no rule has; the message suggests one."""


def select(selected: Sequence[str] | None, ignored: Sequence[str] | None) -> list[Rule[Case]]:
    """The rules that ``selected`` names (all, where it names none) less those of ``ignored``.

    A name is a slug, a code, the beginning of codes (``DSG2``), a family, or ``all``; several
    may stand in one string, separated by commas.

    Raises:
        SelectionError: a name fits no rule.
    """
    if selected and not _names(selected):
        raise SelectionError("no rule is named; `dsguard rules` lists them")
    wanted = _names(selected) or ["all"]
    unwanted = _names(ignored)
    for name in (*wanted, *unwanted):
        if not any(_fits(rule, name) for rule in all_rules()):
            known = [r.meta.slug for r in all_rules()] + [r.meta.code for r in all_rules()]
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else "; `dsguard rules` lists them"
            raise SelectionError(f"no rule is called {name}{hint}")
    return [
        rule
        for rule in all_rules()
        if any(_fits(rule, name) for name in wanted)
        and not any(_fits(rule, name) for name in unwanted)
    ]


def _names(given: Sequence[str] | None) -> list[str]:
    names = [name.strip() for text in given or () for name in text.split(",") if name.strip()]
    return [name.upper() if name.lower().startswith("dsg") else name for name in names]


def _fits(rule: Rule[Case], name: str) -> bool:
    meta = rule.meta
    if name in ("all", meta.slug, meta.family):
        return True
    return name.startswith("DSG") and len(name) > 3 and meta.code.startswith(name)
