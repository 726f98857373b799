"""A launcher started by every task; see launcher_in_every_task.md."""

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

_WAYS_OUT: dict[TroubleKind, WayOut] = {
    "launcher-in-every-task": (
        "start one task on each node: srun --ntasks-per-node=1, mpirun -npernode 1"
    ),
}


@rule(
    code="DSG613",
    slug="launcher-in-every-task",
    summary="every task of srun or mpirun starts a whole launcher",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle=None,
    when=(Troubles(*_WAYS_OUT),),
)
def launcher_in_every_task(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report a launcher that runs several times on one machine."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.LATE)
