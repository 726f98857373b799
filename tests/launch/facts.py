"""Small ways to look at facts and troubles in the tests of this folder."""

from __future__ import annotations

from dsguard.launch.context import LaunchContext
from dsguard.model.fact import Fact, Known, Unknown


def value(fact: Fact) -> object:
    """The known value, or the reason why there is none."""
    if isinstance(fact, Known):
        return fact.value
    assert isinstance(fact, Unknown)
    return fact.reason


def source(fact: Fact) -> str:
    """Where a known value comes from: kind and what is written there."""
    assert isinstance(fact, Known), fact
    return f"{fact.origin.kind.value}: {fact.origin.describe()}"


def kinds(context: LaunchContext) -> list[str]:
    return [trouble.kind for trouble in context.troubles]


def refused(context: LaunchContext) -> bool:
    return any(trouble.refused for trouble in context.troubles)


def pointed_at(context: LaunchContext, kind: str) -> str:
    """The text that a trouble points at."""
    (trouble,) = [trouble for trouble in context.troubles if trouble.kind == kind]
    return trouble.location.source.slice(trouble.location.span)
