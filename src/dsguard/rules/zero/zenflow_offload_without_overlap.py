"""zenflow.offload without overlap_comm; see zenflow_offload_without_overlap.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.rules.zero._settings import place, reason, release, stage_of, switch, zero

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_OFFLOAD = zero("zenflow.offload")
_OVERLAP = zero("overlap_comm")
_SINCE = Version("0.17.5")
"""The release that brought ZenFlow."""


@rule(
    code="DSG322",
    slug="zenflow-offload-without-overlap",
    summary="ZenFlow offload with overlap_comm off",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage",),
    oracle="deepspeed.initialize raises AssertionError: offload selective optimizer ",
    when=(Written(_OFFLOAD),),
)
def zenflow_offload_without_overlap(case: Case, report: Reporter) -> Iterator[Finding]:
    """The key is about the states of the important columns, beside offload_optimizer."""
    stage = stage_of(case)
    if switch(case, _OFFLOAD, False) is not True or stage == 0 or release(case) < _SINCE:
        return
    # DeepSpeed's own default overlaps at stage 3 only.
    if switch(case, _OVERLAP, stage == 3) is not False:
        return
    default = "" if reason(case, _OVERLAP) else " (the default below stage 3)"
    yield report(
        place(case, _OFFLOAD),
        f"zenflow.offload is true, which needs overlap_comm, but that is false{default}",
        Consequence.LATE,
        because=reason(case, _OVERLAP),
        help="set zero_optimization.overlap_comm to true, or remove zenflow.offload",
    )
