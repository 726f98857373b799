"""Optimizer offload at stage 0; see offload_without_zero.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.fact import Known
from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Is
from dsguard.rules.zero._settings import (
    CPU_CLASSES,
    OFFLOADED,
    named_optimizer,
    stage_of,
    stage_reason,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG303",
    slug="offload-without-zero",
    summary="offload_optimizer while ZeRO is off",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage", "offload_optimizer"),
    oracle="the engine builds DeepSpeedCPUAdam at stage 0 and no ZeRO optimizer around it",
    when=(Is("zero_stage", 0), Is("offload_optimizer", *OFFLOADED)),
)
def offload_without_zero(case: Case, report: Reporter) -> Iterator[Finding]:
    """Worse than ignored where the config names an optimizer that has a CPU class."""
    device = case.facts.known("offload_optimizer")
    if stage_of(case) != 0 or device.value not in OFFLOADED or device.origin.location is None:
        return
    optimizer = case.facts["optimizer"]
    breaks = named_optimizer(case) in CPU_CLASSES and isinstance(optimizer, Known)
    yield report(
        device.origin.location,
        f"offload_optimizer.device is {device.value} with ZeRO stage 0, which offloads nothing"
        + (
            f"; {optimizer.value} still becomes DeepSpeed's CPU class, which stops in the first "
            "step because the parameters are on the GPU"
            if breaks and isinstance(optimizer, Known)
            else ""
        ),
        Consequence.LATE if breaks else Consequence.IGNORED,
        because=stage_reason(case),
        help="set zero_optimization.stage to 1, 2 or 3, or remove offload_optimizer",
        severity=Severity.ERROR if breaks else Severity.WARNING,
        # That the first step stops is read in the source: it takes a GPU to see it. Without an
        # optimizer in the config, what happens depends on the script's.
        confidence=Confidence.MEDIUM,
    )
