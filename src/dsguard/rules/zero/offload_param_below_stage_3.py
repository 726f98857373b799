"""Parameter offload below stage 3; see offload_param_below_stage_3.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Is
from dsguard.rules.zero._settings import OFFLOADED, stage_of, stage_reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG302",
    slug="offload-param-below-stage-3",
    summary="offload_param where ZeRO does not partition parameters",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("zero_stage", "offload_param"),
    oracle="the engine builds the same optimizer as without the block",
    when=(Is("offload_param", *OFFLOADED),),
)
def offload_param_below_stage_3(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report the device of the block, or the old switch that stands for it."""
    device = case.facts.known("offload_param")
    if stage_of(case) == 3 or device.value not in OFFLOADED or device.origin.location is None:
        return
    yield report(
        device.origin.location,
        f"offload_param.device is {device.value}, but only stage 3 offloads parameters: with stage "
        f"{stage_of(case)} they stay on the device",
        Consequence.IGNORED,
        because=stage_reason(case),
        help="remove offload_param; offload_optimizer works from stage 1 on, and stage 3 "
        "partitions the parameters first",
    )
