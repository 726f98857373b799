"""Sequence parallelism that only DeepSpeed knows of; see sequence_parallel_not_told.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.equation import number
from dsguard.facts.values import is_number, written
from dsguard.frontends.base import AUTO, THROUGH_ACCELERATE
from dsguard.model.fact import Known
from dsguard.model.finding import Because, Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import ReadBy, Written
from dsguard.rules.frontend._trainer import read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEY = "sequence_parallel_size"


@rule(
    code="DSG712",
    slug="sequence-parallel-not-told",
    summary="sequence_parallel_size in the config, where the trainer counts every rank",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("front_end", "world_size"),
    oracle="raises AssertionError: Check batch related parameters",
    when=(ReadBy(*THROUGH_ACCELERATE), Written(_KEY)),
)
def sequence_parallel_not_told(case: Case, report: Reporter) -> Iterator[Finding]:
    """The trainer fills ``train_batch_size`` for all ranks, and DeepSpeed divides them."""
    document = read_by(case, *THROUGH_ACCELERATE)
    size = written(document, _KEY)
    total = written(document, "train_batch_size")
    if size is None or total is None or size.origin.location is None or case.front_end is None:
        return
    if not is_number(size.value) or size.value <= 1 or total.value != AUTO:
        return
    if written(document, "data_parallel_size") is not None:
        return
    world = case.facts.known("world_size")
    ranks = case.facts["data_parallel_size"]
    shared = number(ranks.value) if isinstance(ranks, Known) else "fewer"
    yield report(
        size.origin.location,
        f'{case.front_end.title} fills the "auto" of train_batch_size for {world.value} ranks, and '
        f"DeepSpeed counts {shared} of them ({world.value} / {number(size.value)}): the product "
        "does not hold and DeepSpeed stops",
        Consequence.REFUSED,
        because=(Because.of("world_size", world),),
        help="remove the key, which does not share sequences by itself, and give the trainer "
        f"ParallelismConfig(sp_backend='deepspeed', sp_size={number(size.value)})",
        # With a ParallelismConfig in the script Accelerate corrects the number.
        confidence=Confidence.MEDIUM,
    )
