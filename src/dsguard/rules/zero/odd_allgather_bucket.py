"""An all-gather bucket that is no multiple of two; see odd_allgather_bucket.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.values import written
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.rules.zero._settings import number, place, stage_of, stage_reason, zero

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_SIZE = zero("allgather_bucket_size")


@rule(
    code="DSG308",
    slug="odd-allgather-bucket",
    summary="an odd allgather_bucket_size",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage",),
    oracle="deepspeed.initialize raises AssertionError: allgather_bucket_size must be",
    when=(Written(_SIZE),),
)
def odd_allgather_bucket(case: Case, report: Reporter) -> Iterator[Finding]:
    """Stage 1 and 2 align the partitions they gather to two elements."""
    size = number(case, _SIZE)
    if stage_of(case) not in (1, 2) or size is None or size % 2 != 1:
        return
    if _mixed(case):
        return
    yield report(
        place(case, _SIZE),
        f"allgather_bucket_size is {size:.0f}, but stage {stage_of(case)} takes even sizes only",
        Consequence.LATE,
        because=stage_reason(case),
        help=f"write {size + 1:.0f}",
    )


def _mixed(case: Case) -> bool:
    """Whether bf16 with fp32 accumulation at stage 1 goes another way, which has no such check."""
    accumulation = written(case.document, "data_types.grad_accum_dtype")
    return stage_of(case) == 1 and accumulation is not None
