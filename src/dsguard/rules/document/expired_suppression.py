"""A suppression whose last day is over; see expired_suppression.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Never

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG011",
    slug="expired-suppression",
    summary="a suppression whose last day is over",
    severity=Severity.WARNING,
    since="0.1.0",
    when=(Never(),),
)
def expired_suppression(case: Case, report: Reporter) -> Iterator[Finding]:
    """Nothing to look for: dates are compared when suppressions are applied."""
    yield from ()
