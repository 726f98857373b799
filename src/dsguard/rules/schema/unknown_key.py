"""A key that no DeepSpeed release reads here; see unknown_key.md."""

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
    code="DSG101",
    slug="unknown-key",
    summary="a key that DeepSpeed does not read",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="strict blocks raise ValidationError: Extra inputs are not permitted; others ignore it",
    when=(Problems(ProblemKind.UNKNOWN_KEY),),
)
def unknown_key(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report keys that nothing reads: refused in strict blocks, ignored elsewhere."""
    yield from report_problems(case, report, ProblemKind.UNKNOWN_KEY)
