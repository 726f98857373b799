"""A total that its parts do not divide; see indivisible_batch_size.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dsguard.facts.equation import BatchFailure, number
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.batch._numbers import counted, place, reasons
from dsguard.rules.conditions import Fails

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.model.fact import FactName


@rule(
    code="DSG202",
    slug="indivisible-batch-size",
    summary="train_batch_size is not a multiple of what it is divided by",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("train_batch_size", "data_parallel_size"),
    oracle="raises AssertionError: Check batch related parameters",
    when=(Fails(BatchFailure.INDIVISIBLE),),
)
def indivisible_batch_size(case: Case, report: Reporter) -> Iterator[Finding]:
    """DeepSpeed floors the derived value and then finds the product short."""
    if case.batch.failure is not BatchFailure.INDIVISIBLE:
        return
    train = case.facts.value("train_batch_size")
    ranks = case.facts.value("data_parallel_size")
    parts = counted(ranks, "data-parallel rank")
    divisor, divisor_name = ranks, f"the {parts}"
    given: tuple[FactName, ...] = ()
    derived = "the micro batch"
    if "micro_batch_size" in case.batch.given:
        given, derived = ("micro_batch_size",), "the accumulation"
        micro = case.facts.value("micro_batch_size")
        divisor = micro * ranks
        divisor_name = f"{number(divisor)} ({number(micro)} per GPU x {parts})"
    elif "gradient_accumulation_steps" in case.batch.given:
        given = ("gradient_accumulation_steps",)
        steps = case.facts.value("gradient_accumulation_steps")
        divisor = steps * ranks
        divisor_name = f"{number(divisor)} ({counted(steps, 'accumulation step')} x {parts})"
    yield report(
        place(case, "train_batch_size"),
        f"train_batch_size {number(train)} is not a multiple of {divisor_name}: DeepSpeed rounds "
        f"{derived} down and stops, because the product is {number(case.batch.product)}",
        Consequence.REFUSED,
        because=reasons(case, *given, "data_parallel_size"),
        help=_way_out(train, divisor, leave_out="micro_batch_size" in given),
    )


def _way_out(train: Any, divisor: Any, *, leave_out: bool) -> str:
    """The nearest totals that fit. There are none where the ranks are no whole number."""
    if not float(divisor).is_integer():
        return "use a sequence_parallel_size that divides the number of processes"
    below = train // divisor * divisor
    choices = [number(total) for total in (below, below + divisor) if total > 0]
    help = f"use a train_batch_size of {' or '.join(choices)}"
    return f"{help}, or leave it out and DeepSpeed derives it" if leave_out else help
