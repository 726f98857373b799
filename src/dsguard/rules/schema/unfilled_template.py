"""A config with placeholders; see unfilled_template.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Given, Problems
from dsguard.schema.problem import Problem, ProblemKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG112",
    slug="unfilled-template",
    summary="placeholders stand where values belong, so the file is a template",
    severity=Severity.INFO,
    since="0.1.0",
    oracle="DeepSpeedConfig refuses most templates as they are",
    when=(Given("document"), Problems(ProblemKind.PLACEHOLDER)),
)
def unfilled_template(case: Case, report: Reporter) -> Iterator[Finding]:
    """Say once that the placeholders were not judged; a script fills in its own values."""
    if case.document is not None and case.document.in_code:
        return
    for problem in case.problems:
        if problem.kind is ProblemKind.PLACEHOLDER and not _is_set_in_code(case, problem):
            yield report(
                case.locate(problem),
                problem.message,
                problem.consequence,
                help="check the file that is made from this one",
            )


def _is_set_in_code(case: Case, problem: Problem) -> bool:
    """Whether a script puts a value there that is only known when it runs."""
    places = case.document.elsewhere if case.document is not None else {}
    return any(f"{problem.pointer}/".startswith(f"{pointer}/") for pointer in places)
