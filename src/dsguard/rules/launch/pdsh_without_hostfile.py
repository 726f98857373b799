"""Several machines without a hostfile; see pdsh_without_hostfile.md."""

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
    "pdsh-without-hostfile": (
        "give --deepspeed_hostfile, or --deepspeed_multinode_launcher standard and start the "
        "command on every machine"
    ),
}


@rule(
    code="DSG612",
    slug="pdsh-without-hostfile",
    summary="each machine trains by itself, because pdsh has no hostfile",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="accelerate launch passes --hostfile None, which is not found",
    when=(Troubles(*_WAYS_OUT),),
)
def pdsh_without_hostfile(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report a multi-machine DeepSpeed launch that starts on one machine only."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.DIFFERS)
