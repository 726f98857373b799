"""Settings that DeepSpeed reads and fails over later; see failing_combination.md."""

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
    code="DSG113",
    slug="failing-combination",
    summary="settings that DeepSpeed reads and cannot use together",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="raises after the config was read",
    when=(Problems(ProblemKind.FAILING_COMBINATION),),
)
def failing_combination(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report combinations that the config reader takes and the engine does not."""
    return report_problems(case, report, ProblemKind.FAILING_COMBINATION)
