"""Tensor-parallel groups that do not tile the ranks; see tensor_parallel_not_dividing_world.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.rules.zero._settings import number, place, release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_SIZE = "tensor_parallel.autotp_size"
_SINCE = Version("0.16.4")
"""The release that brought the key."""


@rule(
    code="DSG319",
    slug="tensor-parallel-not-dividing-world",
    summary="autotp_size that does not divide the ranks",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("world_size",),
    oracle="deepspeed.initialize raises AssertionError or RuntimeError",
    when=(Written(_SIZE),),
)
def tensor_parallel_not_dividing_world(case: Case, report: Reporter) -> Iterator[Finding]:
    """The ranks are cut into groups of this size."""
    size, world = number(case, _SIZE), case.facts.known("world_size")
    if size is None or size <= 1 or world.value % size == 0 or release(case) < _SINCE:
        return
    yield report(
        place(case, _SIZE),
        f"tensor_parallel.autotp_size {size:g} does not divide the world size {world.value}",
        Consequence.LATE,
        because=(Because.of("world_size", world),),
        help="write a divisor of the world size, at most the GPUs of one node",
    )
