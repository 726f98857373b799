"""A suppression of a locked rule; see locked_suppression.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Never

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG012",
    slug="locked-suppression",
    summary="a suppression of a rule that the settings lock",
    severity=Severity.WARNING,
    since="0.1.0",
    when=(Never(),),
)
def locked_suppression(case: Case, report: Reporter) -> Iterator[Finding]:
    """Nothing to look for: locks are known when suppressions are applied."""
    yield from ()
