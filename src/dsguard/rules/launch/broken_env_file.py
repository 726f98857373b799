"""A file of variables that the launcher cannot read; see broken_env_file.md."""

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
    "env-file-syntax": "write each line as NAME=value, without blank lines and comments",
}


@rule(
    code="DSG623",
    slug="broken-env-file",
    summary="the file of variables for the other machines is malformed",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="deepspeed.launcher.runner.main raises ValueError: not enough values to unpack",
    when=(Troubles(*_WAYS_OUT),),
)
def broken_env_file(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report the line of .deepspeed_env at which the launcher stops."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.REFUSED)
