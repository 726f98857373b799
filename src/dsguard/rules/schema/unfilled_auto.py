"""``"auto"`` where nobody fills it; see unfilled_auto.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.frontends.base import AUTO, THROUGH_ACCELERATE
from dsguard.frontends.detect import some_trainer_fills
from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.model.tree import Document, Node, Object, dotted, inside, walk
from dsguard.rules._reader import confidence_in_reader
from dsguard.rules.conditions import Either, Is, Problems, Weighs
from dsguard.rules.schema._report import report_problem
from dsguard.schema.problem import ProblemKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG106",
    slug="unfilled-auto",
    summary='"auto" under a key that nobody fills',
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="raises TypeError or ValueError where it is refused; pydantic blocks drop it",
    when=(
        Weighs("front_end"),
        Either(Problems(ProblemKind.UNFILLED_AUTO), Is("front_end", *THROUGH_ACCELERATE)),
    ),
)
def unfilled_auto(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report ``"auto"`` that the front end leaves in place, or that no trainer would fill."""
    front_end = case.front_end
    if front_end is not None and front_end.stops_at_auto:
        for pointer in _autos(case.document):
            key = dotted(pointer)
            if not front_end.fills(key) and case.document is not None:
                yield report(
                    case.document.locate(pointer),
                    f'{front_end.title} does not fill "auto" in {key} and stops with '
                    '"not found in kwargs"',
                    Consequence.REFUSED,
                    help="write a value, or leave the key out to get DeepSpeed's default",
                    confidence=confidence_in_reader(case),
                )
        return
    for problem in case.problems:
        if problem.kind is not ProblemKind.UNFILLED_AUTO:
            continue
        if front_end is not None:
            yield report_problem(
                case,
                report,
                problem,
                help='write a value: only HF Trainer and Accelerate fill "auto"',
                confidence=confidence_in_reader(case),
            )
        elif not some_trainer_fills(dotted(problem.pointer)):
            yield report(
                case.locate(problem),
                f'no trainer fills "auto" in {dotted(problem.pointer)}: HF Trainer and Accelerate '
                'stop with "not found in kwargs", and plain DeepSpeed gives it no meaning',
                Consequence.REFUSED,
                confidence=Confidence.MEDIUM,
                help="write a value, or leave the key out to get DeepSpeed's default",
            )


def _autos(document: Document | None) -> Iterator[str]:
    """Where ``"auto"`` stands in objects of objects; what is in a list is not looked at."""
    for trail, node in walk(document.root, _members) if document is not None else ():
        if node.value == AUTO and trail.above is not None:
            yield trail.pointer


def _members(node: Node) -> Iterable[tuple[str | int, Node]]:
    return inside(node) if isinstance(node, Object) else ()
