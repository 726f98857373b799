"""Processes that accelerate launch does not start; see processes_dropped.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Troubles
from dsguard.rules.launch._troubles import WayOut, report_troubles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.launch.context import TroubleKind

_DROPPED: dict[TroubleKind, WayOut] = {
    "processes-dropped": (
        "--num_processes is the total over all machines: use a multiple of --num_machines"
    ),
}
_IGNORED: dict[TroubleKind, WayOut] = {
    "processes-ignored": (
        "name the kind of distributed training, such as --use_deepspeed or --multi_gpu"
    ),
}


@rule(
    code="DSG611",
    slug="processes-dropped",
    summary="num_processes does not reach every machine in full",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="num_processes // num_machines processes run on each machine",
    when=(Troubles(*_DROPPED, *_IGNORED),),
)
def processes_dropped(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report processes that are asked for and not started."""
    yield from report_troubles(case, report, _DROPPED, Consequence.DIFFERS)
    # A config for one process may keep the count of another day.
    yield from report_troubles(
        case, report, _IGNORED, Consequence.DIFFERS, severity=Severity.WARNING
    )
