"""Expert-parallel groups that do not tile the ranks; see expert_parallel_not_dividing_world.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.rules.zero._settings import number, place, release, switch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_SIZE = "expert_parallel.autoep_size"
_SINCE = Version("0.19.3")
"""The release that brought the check."""


@rule(
    code="DSG328",
    slug="expert-parallel-not-dividing-world",
    summary="autoep_size that does not divide the ranks",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("world_size",),
    oracle="deepspeed.initialize raises ValueError: autoep_size ... must divide the stage size",
    when=(Written(_SIZE),),
)
def expert_parallel_not_dividing_world(case: Case, report: Reporter) -> Iterator[Finding]:
    """What does not divide all ranks does not divide those of a pipeline stage either."""
    size, world = number(case, _SIZE), case.facts.known("world_size")
    if size is None or size <= 1 or world.value % size == 0 or release(case) < _SINCE:
        return
    if switch(case, "expert_parallel.enabled", False) is not True:
        return
    yield report(
        place(case, _SIZE),
        f"expert_parallel.autoep_size {size:g} does not divide the world size {world.value}; "
        "deepspeed.initialize stops",
        Consequence.LATE,
        because=(Because.of("world_size", world),),
        help="write a divisor of the world size that also divides the number of experts",
    )
