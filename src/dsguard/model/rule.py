"""What a rule is.

A rule is one function in one module, with its page beside it. It yields findings over a
case; the metadata given to :func:`rule` says everything else about it. Nobody keeps a list of the
rules: what is central is generated from their modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from msgspec import Struct

from dsguard.model.finding import (
    Because,
    Confidence,
    Consequence,
    Finding,
    Fix,
    Severity,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dsguard.model.fact import FactName
    from dsguard.model.source import Location

CaseT = TypeVar("CaseT")

FAMILIES: dict[str, str] = {
    "0": "document",
    "1": "schema",
    "2": "batch",
    "3": "zero",
    "4": "precision",
    "5": "optimizer",
    "6": "launch",
    "7": "frontend",
    "8": "script",
    "9": "guard",
}
"""The family that the first digit of a code stands for."""


class Condition(Protocol):
    """A part of what must hold before a rule can find anything."""

    def met(self, case: Any) -> bool:
        """Whether it holds for a case."""


class RuleMeta(Struct, frozen=True):
    """What is known of a rule without running it.

    ``needs`` are facts that must be known; otherwise the rule is skipped and the report says so.
    ``oracle`` says how DeepSpeed's own verdict proves the rule, such as
    ``raises AssertionError: Check batch related parameters``; None where DeepSpeed says nothing.
    ``when`` must be met before the rule can find anything; the module of a rule for which it is
    not met is not imported.
    """

    code: str
    slug: str
    summary: str
    severity: Severity
    since: str
    needs: tuple[FactName, ...] = ()
    oracle: str | None = None
    when: tuple[Condition, ...] = ()

    @property
    def family(self) -> str:
        """The family by the first digit of the code, such as ``batch``."""
        return FAMILIES[self.code[3]]


class Reporter:
    """Makes the findings of one rule, so that a rule cannot forget its own name."""

    def __init__(self, meta: RuleMeta) -> None:
        self._meta = meta

    def __call__(
        self,
        at: Location,
        message: str,
        consequence: Consequence,
        *,
        because: tuple[Because, ...] = (),
        fix: Fix | None = None,
        help: str = "",
        severity: Severity | None = None,
        confidence: Confidence = Confidence.HIGH,
    ) -> Finding:
        """A finding of this rule; ``severity`` only where it differs from the rule's own."""
        return Finding(
            code=self._meta.code,
            rule=self._meta.slug,
            severity=severity or self._meta.severity,
            confidence=confidence,
            consequence=consequence,
            message=message,
            location=at,
            because=because,
            fix=fix,
            help=help,
        )


class Rule(Struct, Generic[CaseT], frozen=True):
    """A rule's metadata and its function."""

    meta: RuleMeta
    check: Callable[[CaseT, Reporter], Iterator[Finding]]
    module: str

    def findings(self, case: CaseT) -> Iterator[Finding]:
        """Run the rule over a case. The caller has seen to ``needs``."""
        return self.check(case, Reporter(self.meta))


def rule(
    *,
    code: str,
    slug: str,
    summary: str,
    severity: Severity,
    since: str,
    needs: tuple[FactName, ...] = (),
    oracle: str | None = None,
    when: tuple[Condition, ...] = (),
) -> Callable[[Callable[[CaseT, Reporter], Iterator[Finding]]], Rule[CaseT]]:
    """Make a function a rule; see :class:`RuleMeta` for the arguments."""
    meta = RuleMeta(code, slug, summary, severity, since, needs, oracle, when)

    def decorate(check: Callable[[CaseT, Reporter], Iterator[Finding]]) -> Rule[CaseT]:
        return Rule(meta, check, check.__module__)

    return decorate
