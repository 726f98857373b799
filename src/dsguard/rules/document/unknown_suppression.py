"""A suppression of a rule that does not exist; see unknown_suppression.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Never

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG010",
    slug="unknown-suppression",
    summary="a suppression of a rule that does not exist",
    severity=Severity.WARNING,
    since="0.1.0",
    when=(Never(),),
)
def unknown_suppression(case: Case, report: Reporter) -> Iterator[Finding]:
    """Nothing to look for: names are looked up when suppressions are applied."""
    yield from ()
