"""zenflow where nothing is offloaded; see zenflow_without_offload.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.values import block, pointer_of
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.rules.zero._settings import OFFLOADED, release, stage_of, stage_reason, zero

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_ZENFLOW = zero("zenflow")
_SINCE = Version("0.17.5")
"""The release that brought ZenFlow."""


@rule(
    code="DSG313",
    slug="zenflow-without-offload",
    summary="ZenFlow without optimizer offload",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage", "offload_optimizer"),
    oracle="deepspeed.initialize raises ValueError: Zenflow must be used with cpu offload",
    when=(Written(_ZENFLOW),),
)
def zenflow_without_offload(case: Case, report: Reporter) -> Iterator[Finding]:
    """Stage 3 is not judged: its ZenFlow runs on CUDA only."""
    stage, device = stage_of(case), case.facts.known("offload_optimizer")
    if case.document is None or not block(case.document, _ZENFLOW) or release(case) < _SINCE:
        return
    if stage == 3 or (stage != 0 and device.value in OFFLOADED):
        return
    yield report(
        case.document.locate(pointer_of(_ZENFLOW), "key"),
        "zenflow is set with ZeRO stage 0: the first step fails"
        if stage == 0
        else f"zenflow is set without offload_optimizer, which it needs at stage {stage}",
        Consequence.LATE,
        because=stage_reason(case),
        help="set zero_optimization.stage to 1 or 2, with offload_optimizer on cpu"
        if stage == 0
        else 'add "offload_optimizer": {"device": "cpu"}, or remove zenflow',
    )
