"""The rules, one module each: ``rules/<family>/<slug>.py`` with its page beside it.

Nothing lists them: :func:`all_rules` walks the packages, so adding a rule is adding a module.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsguard.model.rule import Rule

if TYPE_CHECKING:
    from dsguard.facts.case import Case

CRASH = "internal-error"
"""The rule under whose name a crash is reported."""


@lru_cache(maxsize=1)
def all_rules() -> tuple[Rule[Case], ...]:
    """Every rule, by code.

    Raises:
        RuntimeError: two rules share a code or a slug, or a rule stands under another name
            than its slug. That is a fault of dsguard, not of its input.
    """
    rules: list[Rule[Case]] = []
    for family in pkgutil.iter_modules(__path__):
        if not family.ispkg:
            continue
        package = importlib.import_module(f"{__name__}.{family.name}")
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.startswith("_"):
                rules.append(_rule_of(f"{package.__name__}.{module.name}"))
    rules.sort(key=lambda rule: rule.meta.code)
    for name in ("code", "slug"):
        names = [getattr(rule.meta, name) for rule in rules]
        if len(set(names)) != len(names):
            raise RuntimeError(f"two rules share a {name}: {names}")
    return tuple(rules)


def find_rule(name: str) -> Rule[Case] | None:
    """The rule with this code or slug."""
    for rule in all_rules():
        if name.upper() == rule.meta.code or name == rule.meta.slug:
            return rule
    return None


def did_you_mean(name: str) -> str:
    """A way out for whoever names a rule that does not exist."""
    known = [text for rule in all_rules() for text in (rule.meta.slug, rule.meta.code)]
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else "`dsguard rules` lists them"


def page(rule: Rule[Any]) -> str:
    """The Markdown page of a rule, which stands beside its module."""
    module = importlib.import_module(rule.module)
    assert module.__file__ is not None
    return Path(module.__file__).with_suffix(".md").read_text(encoding="utf-8")


def symptoms(rule: Rule[Any]) -> tuple[str, ...]:
    """What a user sees of what a rule finds, as its page says; error messages in backticks.

    ``...`` in a message stands for what differs from run to run.
    """
    lines = page(rule).splitlines()
    return tuple(line.removeprefix(_SYMPTOM) for line in lines if line.startswith(_SYMPTOM))


_SYMPTOM = "- Symptom: "


def _rule_of(module_name: str) -> Rule[Case]:
    module = importlib.import_module(module_name)
    stem = module_name.rpartition(".")[2]
    rule = getattr(module, stem, None)
    if not isinstance(rule, Rule) or rule.meta.slug.replace("-", "_") != stem:
        raise RuntimeError(f"{module_name} defines no rule of its own name")
    return rule
