"""A suppression that leaves nothing out; see unused_suppression.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Never

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG008",
    slug="unused-suppression",
    summary="a suppression where the rule finds nothing",
    severity=Severity.WARNING,
    since="0.1.0",
    when=(Never(),),
)
def unused_suppression(case: Case, report: Reporter) -> Iterator[Finding]:
    """Nothing to look for: it is known once all rules have run and nothing was left out."""
    yield from ()
