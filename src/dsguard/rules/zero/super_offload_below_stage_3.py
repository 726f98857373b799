"""super_offload where only stage 3 has it; see super_offload_below_stage_3.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.rules.zero._settings import (
    OFFLOADED,
    place,
    release,
    stage_of,
    stage_reason,
    switch,
    zero,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEY = zero("offload_optimizer.super_offload")
_SINCE = Version("0.18.0")
"""The release that brought the key."""


@rule(
    code="DSG317",
    slug="super-offload-below-stage-3",
    summary="super_offload below stage 3",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("zero_stage", "offload_optimizer"),
    oracle="the engine builds the plain ZeRO optimizer",
    when=(Written(_KEY),),
)
def super_offload_below_stage_3(case: Case, report: Reporter) -> Iterator[Finding]:
    """The optimizer is offloaded all the same, in the ordinary way."""
    if switch(case, _KEY, False) is not True:
        return
    device = case.facts.known("offload_optimizer")
    if stage_of(case) == 3 or device.value not in OFFLOADED or release(case) < _SINCE:
        return
    yield report(
        place(case, _KEY),
        f"super_offload has no effect with stage {stage_of(case)}: only stage 3 uses it",
        Consequence.IGNORED,
        because=stage_reason(case),
        help="set zero_optimization.stage to 3, or remove super_offload",
    )
