"""The rules, one module each: ``rules/<family>/<slug>.py`` with its page beside it.

:mod:`dsguard.rules._index` says what there is without importing them; ``tools/generate.py`` makes
it from the modules, so adding a rule is adding a module and running that.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from dsguard.model.rule import Reporter, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.model.finding import Finding

CRASH = "internal-error"
"""The rule under whose name a crash is reported."""


@lru_cache(maxsize=1)
def all_rules() -> tuple[Rule[Case], ...]:
    """Every rule, by code."""
    # The generator imports this package where the index is still to be made.
    from dsguard.rules._index import METAS

    found = ((meta, f"{__name__}.{meta.family}.{meta.slug.replace('-', '_')}") for meta in METAS)
    return tuple(Rule(meta, _Check(module), module) for meta, module in found)


def find_rule(name: str) -> Rule[Case] | None:
    """The rule with this code or slug."""
    for rule in all_rules():
        if name.upper() == rule.meta.code or name == rule.meta.slug:
            return rule
    return None


def did_you_mean(name: str) -> str:
    """A way out for whoever names a rule that does not exist."""
    import difflib

    known = [text for rule in all_rules() for text in (rule.meta.slug, rule.meta.code)]
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else "`dsguard rules` lists them"


def page(rule: Rule[Any]) -> str:
    """The Markdown page of a rule, which stands beside its module."""
    spec = importlib.util.find_spec(rule.module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).with_suffix(".md").read_text(encoding="utf-8")


def symptoms(rule: Rule[Any]) -> tuple[str, ...]:
    """What a user sees of what a rule finds, as its page says; error messages in backticks.

    ``...`` in a message stands for what differs from run to run.
    """
    lines = page(rule).splitlines()
    return tuple(line.removeprefix(_SYMPTOM) for line in lines if line.startswith(_SYMPTOM))


_SYMPTOM = "- Symptom: "


class _Check(Struct, frozen=True):
    """The function of a rule, in a module that the first call imports."""

    module: str

    def __call__(self, case: Case, report: Reporter) -> Iterator[Finding]:
        """Ask the rule."""
        return rule_of(self.module).check(case, report)


def rule_of(module: str) -> Rule[Case]:
    """The rule that a module defines.

    Raises:
        RuntimeError: it defines none of its own name. That is a fault of dsguard.
    """
    stem = module.rpartition(".")[2]
    rule = getattr(importlib.import_module(module), stem, None)
    if not isinstance(rule, Rule) or rule.meta.slug.replace("-", "_") != stem:
        raise RuntimeError(f"{module} defines no rule of its own name")
    return rule
