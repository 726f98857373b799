"""A hostfile that is not there; see hostfile_missing.md."""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.facts.case import Case
from dsguard.launch.context import TroubleKind
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.launch._troubles import report_troubles

_WAYS_OUT: dict[TroubleKind, str] = {
    "hostfile-missing": "give the path of a hostfile with lines such as: worker-1 slots=8",
}


@rule(
    code="DSG605",
    slug="hostfile-missing",
    summary="the hostfile does not exist, so only this machine is used",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="deepspeed.launcher.runner.fetch_hostfile warns and returns nothing",
)
def hostfile_missing(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report a named hostfile that does not exist."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.DIFFERS)
