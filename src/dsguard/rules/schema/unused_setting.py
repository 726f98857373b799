"""A setting without effect; see unused_setting.md."""

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
    code="DSG114",
    slug="unused-setting",
    summary="a setting that another one leaves without effect",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="the engine goes on with another value",
    when=(Problems(ProblemKind.UNUSED_SETTING),),
)
def unused_setting(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report values that are accepted and do nothing."""
    return report_problems(case, report, ProblemKind.UNUSED_SETTING)
