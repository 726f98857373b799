"""Every rule of dsguard, those of the linter and those of the guard, and their pages."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dsguard.rules import all_rules, page, symptoms
from dsguard.runtime.rule import all_guard_rules

if TYPE_CHECKING:
    from dsguard.model.rule import Rule

__all__ = ["find", "page", "rules", "symptoms"]


@lru_cache(maxsize=1)
def rules() -> tuple[Rule[Any], ...]:
    """Every rule, by code.

    Raises:
        RuntimeError: two rules share a code or a slug. That is a fault of dsguard.
    """
    known: list[Rule[Any]] = [*all_rules(), *all_guard_rules()]
    known.sort(key=lambda rule: rule.meta.code)
    for name in ("code", "slug"):
        names = [getattr(rule.meta, name) for rule in known]
        if len(set(names)) != len(names):
            raise RuntimeError(f"two rules share a {name}: {names}")
    return tuple(known)


def find(name: str) -> Rule[Any] | None:
    """The rule with this code or slug."""
    for rule in rules():
        if name.upper() == rule.meta.code or name == rule.meta.slug:
            return rule
    return None
