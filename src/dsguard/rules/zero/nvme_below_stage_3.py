"""Optimizer offload to NVMe at stage 1 or 2; see nvme_below_stage_3.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Is
from dsguard.rules.zero._settings import stage_of, stage_reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG305",
    slug="nvme-below-stage-3",
    summary="NVMe offload of the optimizer below stage 3",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("zero_stage", "offload_optimizer"),
    oracle="the engine builds DeepSpeedCPUAdam and never looks at nvme_path",
    when=(Is("offload_optimizer", "nvme"),),
)
def nvme_below_stage_3(case: Case, report: Reporter) -> Iterator[Finding]:
    """The states land in CPU memory, which may not hold them."""
    device = case.facts.known("offload_optimizer")
    stage = stage_of(case)
    if stage not in (1, 2) or device.value != "nvme" or device.origin.location is None:
        return
    yield report(
        device.origin.location,
        f"offload_optimizer.device is nvme, but stage {stage} offloads to CPU memory only: the "
        "optimizer states go there, and nothing goes to NVMe",
        Consequence.DIFFERS,
        because=stage_reason(case),
        help='set the stage to 3, or say "cpu" and see that the states fit into CPU memory',
    )
