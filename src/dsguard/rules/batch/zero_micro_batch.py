"""A micro batch that comes out as 0; see zero_micro_batch.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    code="DSG205",
    slug="zero-micro-batch",
    summary="train_batch_size leaves less than one sample for each rank",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("train_batch_size", "gradient_accumulation_steps", "data_parallel_size"),
    oracle="raises AssertionError: Micro batch size per gpu: 0 has to be greater than 0",
    when=(Fails(BatchFailure.ZERO_MICRO_BATCH),),
)
def zero_micro_batch(case: Case, report: Reporter) -> Iterator[Finding]:
    """The derived micro batch floors to 0."""
    if case.batch.failure is not BatchFailure.ZERO_MICRO_BATCH:
        return
    train, steps, ranks = (case.facts.value(name) for name in zero_micro_batch.meta.needs)
    least = steps * ranks
    parts = counted(ranks, "data-parallel rank")
    given: tuple[FactName, ...] = ()
    if "gradient_accumulation_steps" in case.batch.given:
        given = ("gradient_accumulation_steps",)
        parts = f"{counted(steps, 'accumulation step')} x {parts} = {number(least)}"
    micro = case.facts.known("micro_batch_size")
    yield report(
        place(case, "train_batch_size"),
        f"train_batch_size {number(train)} is smaller than {parts}: the micro batch becomes "
        f"{micro.origin.formula} = {number(micro.value)} and DeepSpeed stops",
        Consequence.REFUSED,
        because=reasons(case, *given, "data_parallel_size"),
        help=f"use a train_batch_size of at least {number(least)}, "
        + ("fewer accumulation steps, " if given else "")
        + "or fewer GPUs",
    )
