"""Muon at stage 3 with reduce_scatter on; see muon_with_reduce_scatter.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.blocks import trust_in_blocks
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Is
from dsguard.rules.zero._settings import (
    named_optimizer,
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

_REDUCE_SCATTER = zero("reduce_scatter")
_SINCE = Version("0.18.9")
"""The release that brought Muon to stage 3."""


@rule(
    code="DSG312",
    slug="muon-with-reduce-scatter",
    summary="Muon at stage 3 with reduce_scatter on",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage", "optimizer"),
    oracle="deepspeed.initialize raises ValueError: Muon and reduce scatter cannot",
    when=(Is("zero_stage", 3), Is("optimizer", "muon")),
)
def muon_with_reduce_scatter(case: Case, report: Reporter) -> Iterator[Finding]:
    """Stage 1 and 2 take Muon as it is."""
    if stage_of(case) != 3 or named_optimizer(case) != "muon" or release(case) < _SINCE:
        return
    optimizer = case.facts.known("optimizer")
    if switch(case, _REDUCE_SCATTER, True) is not True or optimizer.origin.location is None:
        return
    default = "" if reason(case, _REDUCE_SCATTER) else ", the default"
    yield report(
        optimizer.origin.location,
        f"Muon at stage 3 needs whole gradients, but reduce_scatter is true{default}",
        Consequence.LATE,
        because=(*stage_reason(case), *reason(case, _REDUCE_SCATTER)),
        help="set zero_optimization.reduce_scatter to false",
        confidence=trust_in_blocks(case),
    )
