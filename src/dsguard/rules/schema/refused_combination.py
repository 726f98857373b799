"""Settings that DeepSpeed refuses together; see refused_combination.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.fact import Conflict
from dsguard.model.finding import Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Problems, Weighs
from dsguard.rules.schema._report import report_problem
from dsguard.schema.problem import ProblemKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_SECOND_PRECISION = ("/bf16/enabled", "/bfloat16/enabled")


@rule(
    code="DSG109",
    slug="refused-combination",
    summary="settings that DeepSpeed refuses together",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="raises AssertionError, ValueError or ValidationError",
    when=(Weighs("precision"), Problems(ProblemKind.REFUSED_COMBINATION)),
)
def refused_combination(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report combinations that the config reader refuses."""
    two_precisions = isinstance(case.facts["precision"], Conflict)
    for problem in case.problems:
        if problem.kind is not ProblemKind.REFUSED_COMBINATION:
            continue
        if two_precisions and problem.pointer in _SECOND_PRECISION:
            continue  # fp16-with-bf16 says it
        yield report_problem(case, report, problem)
