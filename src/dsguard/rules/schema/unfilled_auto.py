"""``"auto"`` where nobody fills it; see unfilled_auto.md."""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.facts.case import Case
from dsguard.frontends.detect import some_trainer_fills
from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.schema._report import dotted, report_problem
from dsguard.schema.problem import ProblemKind


@rule(
    code="DSG106",
    slug="unfilled-auto",
    summary='"auto" under a key that nobody fills',
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="raises TypeError or ValueError where it is refused; pydantic blocks drop it",
)
def unfilled_auto(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report ``"auto"`` that the front end leaves in place, or that no trainer would fill."""
    for problem in case.problems:
        if problem.kind is not ProblemKind.UNFILLED_AUTO:
            continue
        key = dotted(problem.pointer)
        if case.front_end is None:
            if not some_trainer_fills(key):
                yield report(
                    case.locate(problem),
                    f'no trainer fills "auto" in {key}: HF Trainer and Accelerate stop with '
                    f'"not found in kwargs", and plain DeepSpeed gives it no meaning',
                    Consequence.REFUSED,
                    confidence=Confidence.MEDIUM,
                    help="write a value, or leave the key out to get DeepSpeed's default",
                )
        elif case.front_end.fills(key):
            continue
        elif case.front_end.stops_at_auto:
            yield report(
                case.locate(problem),
                f'{case.front_end.title} does not fill "auto" in {key} and stops with '
                '"not found in kwargs"',
                Consequence.REFUSED,
                help="write a value, or leave the key out to get DeepSpeed's default",
            )
        else:
            yield report_problem(
                case,
                report,
                problem,
                help='write a value: only HF Trainer and Accelerate fill "auto"',
            )
