"""More nodes than the hostfile lists; see nodes_above_hosts.md."""

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
    "num-nodes-above-hosts": "leave --num_nodes out to use every host of the hostfile",
}


@rule(
    code="DSG614",
    slug="nodes-above-hosts",
    summary="--num_nodes is above the number of hosts in the hostfile",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="the launcher uses the hosts that there are",
    when=(Troubles(*_WAYS_OUT),),
)
def nodes_above_hosts(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report a number of nodes above the hosts."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.DIFFERS)
