"""A key that this DeepSpeed release has removed; see removed_key.md."""

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
    code="DSG105",
    slug="removed-key",
    summary="a key that the target release has removed",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="raises DeepSpeedConfigError where it is refused",
    when=(Problems(ProblemKind.REMOVED_KEY),),
)
def removed_key(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report keys that were removed at or before the target release."""
    yield from report_problems(case, report, ProblemKind.REMOVED_KEY)
