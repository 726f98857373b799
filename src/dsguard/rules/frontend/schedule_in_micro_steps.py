"""A schedule counted in another unit than optimizer steps; see schedule_in_micro_steps.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.equation import number
from dsguard.facts.values import is_number, written
from dsguard.frontends.base import FrontEndName
from dsguard.model.finding import Because, Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import ReadBy, Reads, Written
from dsguard.rules.frontend._trainer import read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEY = "scheduler.params.total_num_steps"


@rule(
    code="DSG716",
    slug="schedule-in-micro-steps",
    summary="total_num_steps that counts micro-batches or samples",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("front_end", "gradient_accumulation_steps"),
    oracle="the engine steps its scheduler once per optimizer step",
    when=(Reads("requests"), ReadBy(FrontEndName.PLAIN, FrontEndName.ACCELERATE), Written(_KEY)),
)
def schedule_in_micro_steps(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report a total that is exactly the asked-for steps times the accumulation or the batch."""
    document = read_by(case, FrontEndName.PLAIN, FrontEndName.ACCELERATE)
    total = written(document, _KEY)
    request = case.requests.get(_KEY)
    if total is None or request is None or total.origin.location is None or request.value < 1:
        return
    if not is_number(total.value) or total.value == request.value:
        return
    steps = case.facts.value("gradient_accumulation_steps")
    batch = case.facts.value("train_batch_size")
    for factor, unit in ((steps, "micro-batches"), (batch, "samples")):
        if not is_number(factor) or factor <= 1 or total.value != request.value * factor:
            continue
        yield report(
            total.origin.location,
            f"total_num_steps counts optimizer steps, and {number(total.value)} is "
            f"{request.value} x {number(factor)}, the {unit} of {request.flag} {request.value}: "
            f"the schedule gets through 1/{number(factor)} of its course",
            Consequence.DIFFERS,
            because=(Because(request.name, request.value, request.origin),),
            help=f"write {request.value}",
            confidence=Confidence.MEDIUM,
        )
        return
