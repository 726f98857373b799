"""A hostfile in the place of the training script; see hostfile_as_script.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Troubles
from dsguard.rules.launch._troubles import WayOut, report_troubles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.launch.context import LaunchContext, LaunchTrouble, TroubleKind


def _with_its_option(launch: LaunchContext, trouble: LaunchTrouble) -> str:
    written = trouble.location.source.slice(trouble.location.span)
    return f"write {launch.launcher.value} --hostfile {written}"


_WAYS_OUT: dict[TroubleKind, WayOut] = {"hostfile-as-script": _with_its_option}


@rule(
    code="DSG616",
    slug="hostfile-as-script",
    summary="the hostfile is given without --hostfile, so it is started as the script",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="every process stops with SyntaxError",
    when=(Troubles(*_WAYS_OUT),),
)
def hostfile_as_script(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report a hostfile that deepspeed takes for the training script."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.REFUSED)
