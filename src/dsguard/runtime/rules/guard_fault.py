"""A fault of the guard itself; see guard_fault.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Finding, Severity
from dsguard.runtime.rule import guard_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter
    from dsguard.runtime.moments import Moment


@guard_rule(
    code="DSG900",
    slug="guard-fault",
    summary="a check of the guard failed and was switched off",
    severity=Severity.WARNING,
    since="0.1.0",
    on=(),
)
def guard_fault(moment: Moment, report: Reporter) -> Iterator[Finding]:
    """Nothing to look for: the watch reports under this name when a rule or hook raises."""
    yield from ()
