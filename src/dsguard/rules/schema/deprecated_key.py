"""A key that DeepSpeed reads under protest; see deprecated_key.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.frontends.base import THROUGH_ACCELERATE
from dsguard.model.finding import Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Problems
from dsguard.rules.schema._report import report_problem
from dsguard.schema.problem import ProblemKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG107",
    slug="deprecated-key",
    summary="a key that has a new name",
    severity=Severity.INFO,
    since="0.1.0",
    oracle=None,
    when=(Problems(ProblemKind.DEPRECATED_KEY),),
)
def deprecated_key(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report deprecated keys with their replacement."""
    conflicting = {p.at.tokens for p in case.problems if p.kind is ProblemKind.CONFLICTING_KEYS}
    for problem in case.problems:
        # Beside its replacement the key is refused, which conflicting-keys says.
        if problem.kind is not ProblemKind.DEPRECATED_KEY or problem.at.tokens in conflicting:
            continue
        if problem.pointer == "/bfloat16" and _is_put_aside(case):
            continue
        yield report_problem(case, report, problem)


def _is_put_aside(case: Case) -> bool:
    """Whether Accelerate's plugin adds the new name; precision-argument-ignored tells of it."""
    return case.front_end is not None and case.front_end.name in THROUGH_ACCELERATE
