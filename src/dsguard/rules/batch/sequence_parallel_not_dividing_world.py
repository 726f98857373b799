"""Sequence-parallel groups that do not tile the ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.parallel import DIVIDES_SINCE, MESH_SINCE
from dsguard.facts.values import is_count, written
from dsguard.model.fact import Known
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_SEQUENCE, _DATA = "sequence_parallel_size", "data_parallel_size"


@rule(
    code="DSG209",
    slug="sequence-parallel-not-dividing-world",
    summary="sequence_parallel_size that does not divide the ranks",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("world_size", "data_parallel_size"),
    oracle="the device mesh raises RuntimeError or IndexError, or DeepSpeedConfig counts a "
    "fraction of a rank",
    when=(Written(_SEQUENCE),),
)
def sequence_parallel_not_dividing_world(case: Case, report: Reporter) -> Iterator[Finding]:
    """Both sizes make a mesh of all ranks; one alone divides them, whatever comes out."""
    release, world = Version(case.target.version), case.facts.known("world_size")
    sequence, data = written(case.document, _SEQUENCE), written(case.document, _DATA)
    if sequence is None or sequence.origin.location is None or not is_count(sequence.value):
        return
    because = (Because.of("world_size", world),)
    if data is not None:
        if release < MESH_SINCE or not is_count(data.value):
            return
        if sequence.value * data.value != world.value and min(sequence.value, data.value) > 0:
            yield report(
                sequence.origin.location,
                f"{_DATA} {data.value} x {_SEQUENCE} {sequence.value} is "
                f"{data.value * sequence.value}, but there are {world.value} ranks; "
                "deepspeed.initialize stops when it makes the device mesh",
                Consequence.LATE,
                because=(Because(_DATA, data.value, data.origin), *because),
                help=f"make their product {world.value}",
            )
        return
    ranks = case.facts.value("data_parallel_size")
    derived = isinstance(case.facts["data_parallel_size"], Known)
    if release < DIVIDES_SINCE or not derived or float(ranks).is_integer():
        return
    yield report(
        sequence.origin.location,
        f"{_SEQUENCE} {sequence.value} does not divide the world size {world.value}; DeepSpeed "
        f"calculates the batch with {ranks:.3g} data-parallel ranks",
        Consequence.DIFFERS,
        because=because,
        help="write a divisor of the world size",
    )
