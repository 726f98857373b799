"""A value that DeepSpeed does not accept; see out_of_range_value.md."""

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
    code="DSG104",
    slug="out-of-range-value",
    summary="a value outside what DeepSpeed accepts",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="raises ValidationError, ValueError or AssertionError where it is refused",
    when=(Problems(ProblemKind.OUT_OF_RANGE_VALUE),),
)
def out_of_range_value(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report values out of range or not among the choices."""
    yield from report_problems(case, report, ProblemKind.OUT_OF_RANGE_VALUE)
