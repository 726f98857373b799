"""Hosts or devices that cannot be selected; see refused_host_selection.md."""

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
    "include-and-exclude": "keep --include or --exclude",
    "filter-with-counts": "select with --include/--exclude or --num_nodes/--num_gpus, not both",
    "filter-syntax": "write host@host:slot,slot with single slot numbers",
    "unknown-host": "name a host of the hostfile; without a hostfile there is only localhost",
    "unknown-slot": "slots are counted from 0: slots=4 in a hostfile means 0, 1, 2 and 3",
    "nothing-selected": "leave at least one slot",
    "num-nodes-without-hostfile": "name the hostfile that lists the nodes: --hostfile F",
    "node-rank-out-of-range": "number the nodes from 0",
    "unknown-backend": "use pdsh, openmpi, mpich, impi, mvapich or slurm",
    "backend-refuses-filter": "write a hostfile with just the hosts and slots that are meant",
    "backend-needs-equal-slots": "give all hosts the same number of slots",
}


@rule(
    code="DSG607",
    slug="refused-host-selection",
    summary="the selection of hosts and devices is refused",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="deepspeed.launcher.runner raises ValueError",
    when=(Troubles(*_WAYS_OUT),),
)
def refused_host_selection(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report selections that the launcher refuses."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.REFUSED)
