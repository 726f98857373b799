"""Accumulation left to the script, with overlap_comm; see unmanaged_with_overlap.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.rules.zero._settings import (
    place,
    reason,
    release,
    stage_of,
    stage_reason,
    switch,
    zero,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEY = "managed_gradient_accumulation"
_OVERLAP = zero("overlap_comm")
_COMPILE = "compile.deepcompile"
_SINCE = Version("0.19.4")
"""The release that brought the key; older ones ignore it."""


@rule(
    code="DSG316",
    slug="unmanaged-with-overlap",
    summary="accumulation left to the script where ZeRO cannot",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage",),
    oracle="deepspeed.initialize raises AssertionError: managed_gradient_accumulation",
    when=(Written(_KEY),),
)
def unmanaged_with_overlap(case: Case, report: Reporter) -> Iterator[Finding]:
    """Stage 3 overlaps by default and takes it."""
    if switch(case, _KEY, True) is not False or release(case) < _SINCE:
        return
    stage = stage_of(case)
    if stage < 2 and switch(case, _OVERLAP, False) is True:
        yield report(
            place(case, _KEY),
            f"{_KEY} is false, which works with overlap_comm at stage 2 and 3 only, not at stage "
            f"{stage}",
            Consequence.LATE,
            because=(*stage_reason(case), *reason(case, _OVERLAP)),
            help=f"remove overlap_comm, or {_KEY}",
        )
    elif switch(case, _COMPILE, False) is True:
        yield report(
            place(case, _KEY),
            f"{_KEY} is false, which does not work with compile.deepcompile",
            Consequence.LATE,
            because=reason(case, _COMPILE),
            help=f"remove compile.deepcompile, or {_KEY}",
        )
