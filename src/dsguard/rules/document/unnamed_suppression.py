"""A suppression that names no rule; see unnamed_suppression.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Never

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG009",
    slug="unnamed-suppression",
    summary="a suppression that names no rule",
    severity=Severity.WARNING,
    since="0.1.0",
    when=(Never(),),
)
def unnamed_suppression(case: Case, report: Reporter) -> Iterator[Finding]:
    """Nothing to look for: the comments are read when suppressions are applied."""
    yield from ()
