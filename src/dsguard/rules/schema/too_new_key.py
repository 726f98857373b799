"""A key that the target release does not know yet; see too_new_key.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Problems
from dsguard.rules.schema._report import report_problems
from dsguard.schema.problem import ProblemKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG110",
    slug="too-new-key",
    summary="a key newer than the target release",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="strict blocks raise ValidationError: Extra inputs are not permitted; others ignore it",
    when=(Problems(ProblemKind.TOO_NEW_KEY),),
)
def too_new_key(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report keys that came after the target release."""
    yield from report_problems(case, report, ProblemKind.TOO_NEW_KEY)
