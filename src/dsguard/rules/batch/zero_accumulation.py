"""An accumulation count that comes out as 0; see zero_accumulation.md."""

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


@rule(
    code="DSG204",
    slug="zero-accumulation",
    summary="train_batch_size is smaller than one micro batch on every rank",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("train_batch_size", "micro_batch_size", "data_parallel_size"),
    oracle="raises AssertionError: Gradient accumulation steps: 0 has to be greater than 0",
    when=(Fails(BatchFailure.ZERO_ACCUMULATION),),
)
def zero_accumulation(case: Case, report: Reporter) -> Iterator[Finding]:
    """The derived accumulation count floors to 0."""
    if case.batch.failure is not BatchFailure.ZERO_ACCUMULATION:
        return
    train, micro, ranks = (case.facts.value(name) for name in zero_accumulation.meta.needs)
    yield report(
        place(case, "train_batch_size"),
        f"train_batch_size {number(train)} is smaller than {number(micro)} per GPU x "
        f"{counted(ranks, 'data-parallel rank')} = {number(micro * ranks)}: the accumulation "
        f"becomes {number(train)} // {number(micro)} // {number(ranks)} = 0 and DeepSpeed stops",
        Consequence.REFUSED,
        because=reasons(case, "micro_batch_size", "data_parallel_size"),
        help=f"use a train_batch_size of at least {number(micro * ranks)}, a smaller micro batch, "
        "or fewer GPUs",
    )
