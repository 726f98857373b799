"""Two spellings of one setting; see conflicting_keys.md."""

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
    code="DSG108",
    slug="conflicting-keys",
    summary="two keys for one setting",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="raises AssertionError or ValidationError",
    when=(Problems(ProblemKind.CONFLICTING_KEYS),),
)
def conflicting_keys(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report keys that may not stand together."""
    yield from report_problems(case, report, ProblemKind.CONFLICTING_KEYS)
