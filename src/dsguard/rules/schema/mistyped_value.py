"""A value of a type that DeepSpeed cannot use; see mistyped_value.md."""

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
    code="DSG103",
    slug="mistyped-value",
    summary="a value of the wrong type",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="raises ValidationError, TypeError or AttributeError where it is refused",
    when=(Problems(ProblemKind.MISTYPED_VALUE),),
)
def mistyped_value(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report values of a wrong type."""
    yield from report_problems(case, report, ProblemKind.MISTYPED_VALUE)
