"""Secondary partitions that do not tile the ranks; see hpz_not_dividing_world.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.rules.zero._settings import number, place, release, stage_of, zero

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_SIZE = zero("zero_hpz_partition_size")
_SINCE = Version("0.10.0")
"""The release that brought the key."""


@rule(
    code="DSG310",
    slug="hpz-not-dividing-world",
    summary="zero_hpz_partition_size that does not divide the ranks",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage", "world_size"),
    oracle="deepspeed.utils.groups raises AssertionError: 24 is not divisible by 16",
    when=(Written(_SIZE),),
)
def hpz_not_dividing_world(case: Case, report: Reporter) -> Iterator[Finding]:
    """A size above the world is cut to it and works."""
    size, world = number(case, _SIZE), case.facts.known("world_size")
    if stage_of(case) != 3 or size is None or size <= 1 or release(case) < _SINCE:
        return
    if size >= world.value or world.value % size == 0:
        return
    yield report(
        place(case, _SIZE),
        f"zero_hpz_partition_size {size:.0f} does not divide the world size {world.value}, so the "
        "groups of ranks cannot be made",
        Consequence.LATE,
        because=(Because.of("world_size", world),),
        help="write the number of GPUs of one node",
    )
