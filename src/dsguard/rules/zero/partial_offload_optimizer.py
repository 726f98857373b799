"""offload_optimizer.ratio below 1 without DeepSpeedCPUAdam; see partial_offload_optimizer.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.blocks import trust_in_blocks
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.rules.zero._settings import (
    OFFLOADED,
    named_optimizer,
    number,
    place,
    reason,
    release,
    stage_of,
    switch,
    zero,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_RATIO = zero("offload_optimizer.ratio")
_TORCH_ADAM = "optimizer.params.torch_adam"
_SINCE = Version("0.12.3")
"""The release that brought the ratio."""


@rule(
    code="DSG306",
    slug="partial-offload-optimizer",
    summary="a part of the step offloaded with another optimizer than DeepSpeedCPUAdam",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage", "offload_optimizer", "optimizer"),
    oracle="deepspeed.initialize raises AssertionError: Hybrid Optimizer Only Supports",
    when=(Written(_RATIO),),
)
def partial_offload_optimizer(case: Case, report: Reporter) -> Iterator[Finding]:
    """Adam and AdamW are built as DeepSpeedCPUAdam unless torch_adam says otherwise."""
    ratio = number(case, _RATIO)
    if stage_of(case) != 3 or ratio is None or ratio >= 1 or release(case) < _SINCE:
        return
    device, optimizer = case.facts.known("offload_optimizer"), case.facts.known("optimizer")
    if device.value not in OFFLOADED:
        return
    adam = named_optimizer(case) in ("adam", "adamw")
    if adam and switch(case, _TORCH_ADAM, False) is not True:
        return
    what = f"{optimizer.value} with torch_adam" if adam else optimizer.value
    yield report(
        place(case, _RATIO),
        f"offload_optimizer.ratio {ratio:g} splits the step between GPU and CPU, which only "
        f"DeepSpeedCPUAdam can do, not {what}",
        Consequence.LATE,
        because=(*reason(case, _TORCH_ADAM), Because.of("optimizer", optimizer)),
        help="remove torch_adam" if adam else "take Adam or AdamW, or remove the ratio",
        confidence=trust_in_blocks(case),
    )
