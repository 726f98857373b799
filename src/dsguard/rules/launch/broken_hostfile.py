"""A hostfile that the launcher cannot read; see broken_hostfile.md."""

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
    "hostfile-syntax": "write each line as: <host> slots=<number of devices>",
    "duplicate-host": "name each host once, with all its slots",
    "empty-hostfile": "write a line for each host: <host> slots=<number of devices>",
}


@rule(
    code="DSG606",
    slug="broken-hostfile",
    summary="the hostfile is malformed",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="deepspeed.launcher.runner._parse_hostfile raises ValueError",
    when=(Troubles(*_WAYS_OUT),),
)
def broken_hostfile(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report lines of the hostfile that the launcher refuses."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.REFUSED)
