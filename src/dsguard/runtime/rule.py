"""What a rule of the guard is: a rule of the linter, asked at a moment of the run.

A guard rule is one function in one module of :mod:`dsguard.runtime.rules`, with its page beside
it, as every rule. Its case is a moment (:mod:`dsguard.runtime.moments`) instead of a config.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from dsguard.model.rule import Reporter, Rule, RuleMeta
from dsguard.runtime.moments import Moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dsguard.model.finding import Finding, Severity

MomentT = TypeVar("MomentT", bound=Moment)


class GuardRule(Rule[MomentT], frozen=True):
    """A rule and the moments at which it is asked.

    ``probing`` rules cost more than counting: they are asked in the first windows and then
    in a sample of them.
    """

    on: tuple[type[Moment], ...]
    probing: bool


def guard_rule(
    *,
    code: str,
    slug: str,
    summary: str,
    severity: Severity,
    since: str,
    on: type[Moment] | tuple[type[Moment], ...],
    probing: bool = False,
    oracle: str | None = None,
) -> Callable[[Callable[[MomentT, Reporter], Iterator[Finding]]], GuardRule[MomentT]]:
    """Make a function a rule of the guard; see :class:`RuleMeta` and :class:`GuardRule`."""
    meta = RuleMeta(code, slug, summary, severity, since, oracle=oracle)
    moments = on if isinstance(on, tuple) else (on,)

    def decorate(
        check: Callable[[MomentT, Reporter], Iterator[Finding]],
    ) -> GuardRule[MomentT]:
        return GuardRule(meta, check, check.__module__, moments, probing)

    return decorate


@lru_cache(maxsize=1)
def all_guard_rules() -> tuple[GuardRule[Any], ...]:
    """Every rule of the guard, by code.

    Raises:
        RuntimeError: a module defines no rule of its own name. That is a fault of dsguard.
    """
    package = importlib.import_module("dsguard.runtime.rules")
    rules: list[GuardRule[Any]] = []
    for found in pkgutil.iter_modules(package.__path__):
        if found.name.startswith("_"):
            continue
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        rule = getattr(module, found.name, None)
        if not isinstance(rule, GuardRule) or rule.meta.slug.replace("-", "_") != found.name:
            raise RuntimeError(f"{module.__name__} defines no rule of its own name")
        rules.append(rule)
    return tuple(sorted(rules, key=lambda rule: rule.meta.code))
