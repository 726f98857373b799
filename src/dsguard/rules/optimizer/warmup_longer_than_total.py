"""A warm-up that is longer than the whole schedule; see warmup_longer_than_total.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.blocks import block, trust_in_blocks
from dsguard.facts.values import is_number
from dsguard.model.fact import Known, Origin, OriginKind
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.schema.schedulers import DEEPSPEED_SCHEDULERS, WARMUP_STEPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG510",
    slug="warmup-longer-than-total",
    summary="a warm-up with more steps than the whole schedule",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("total_steps",),
    oracle="the scheduler's learning rate at total_num_steps is below its maximum",
    when=(Written("scheduler"),),
)
def warmup_longer_than_total(case: Case, report: Reporter) -> Iterator[Finding]:
    """Both counts as DeepSpeed gets them; an absent warm-up is 1000 steps long."""
    scheduler = block(case, "scheduler")
    if scheduler is None:
        return
    own = DEEPSPEED_SCHEDULERS.get(scheduler.type)
    if own is None or "total_num_steps" not in own.parameters:
        return
    total = case.facts.known("total_steps")
    warmup = case.facts["warmup_steps"]
    if "warmup_num_steps" not in scheduler.params:
        default = f"{scheduler.type} of DeepSpeed {Version(case.target.version)}"
        warmup = Known(WARMUP_STEPS, Origin(OriginKind.DEFAULT, whose=default))
    if not isinstance(warmup, Known) or not is_number(warmup.value):
        return
    if warmup.value <= total.value or total.value <= 0:
        return
    at = warmup.origin.location or total.origin.location
    if at is None:
        return
    other = (Because.of("total_steps", total),) if at is warmup.origin.location else ()
    written = "" if warmup.origin.kind is not OriginKind.DEFAULT else ", its default,"
    yield report(
        at,
        f"the warm-up takes {warmup.value:g} steps{written} and the whole schedule "
        f"{total.value:g}: the learning rate is still rising at the end and never decays",
        Consequence.DIFFERS,
        because=other,
        confidence=trust_in_blocks(case),
        help="give warmup_num_steps, at most a part of total_num_steps"
        if written
        else "make warmup_num_steps a part of total_num_steps; both count optimizer steps",
    )
