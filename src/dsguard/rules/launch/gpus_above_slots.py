"""More processes on a host than it has slots; see gpus_above_slots.md."""

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
    "gpus-above-slots": "--num_gpus counts the devices of one node; leave it out to use all slots",
}


@rule(
    code="DSG608",
    slug="gpus-above-slots",
    summary="--num_gpus is per node and above the slots of the hostfile",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="the launcher starts that many processes on each node",
    when=(Troubles(*_WAYS_OUT),),
)
def gpus_above_slots(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report a per-node count above the slots."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.LATE)
