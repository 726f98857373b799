"""A hostfile that is not there; see hostfile_missing.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Troubles
from dsguard.rules.launch._troubles import WayOut, report_troubles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.launch.context import TroubleKind

_MISSING: dict[TroubleKind, WayOut] = {
    "hostfile-missing": "give the path of a hostfile with lines such as: worker-1 slots=8",
}
_ELSEWHERE: dict[TroubleKind, WayOut] = {
    "hostfile-elsewhere": "if the machine that launches has it, give dsguard a copy: --hostfile F",
}


@rule(
    code="DSG605",
    slug="hostfile-missing",
    summary="the hostfile does not exist, so only this machine is used",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="deepspeed.launcher.runner.fetch_hostfile warns and returns nothing",
    when=(Troubles(*_MISSING, *_ELSEWHERE),),
)
def hostfile_missing(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report a named hostfile that does not exist; an absolute one may be another machine's."""
    yield from report_troubles(case, report, _MISSING, Consequence.DIFFERS)
    yield from report_troubles(
        case,
        report,
        _ELSEWHERE,
        Consequence.DIFFERS,
        severity=Severity.WARNING,
        confidence=Confidence.MEDIUM,
    )
