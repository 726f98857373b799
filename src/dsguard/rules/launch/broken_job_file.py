"""A job file that its framework refuses; see broken_job_file.md."""

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


def _override(launch: LaunchContext, trouble: LaunchTrouble) -> str:
    typed = trouble.location.source.slice(trouble.location.span).lstrip("-")
    key, _, value = typed.replace("=", " ", 1).partition(" ")
    return f"write {key}={value.strip() or 'true'}"


_WAYS_OUT: dict[TroubleKind, WayOut] = {
    "job-file-missing": "write the path as seen from the folder that the command is run in",
    "job-file-syntax": "repair the file",
    "job-override-refused": _override,
    "job-keys-conflict": "axolotl takes only one: batch_size or gradient_accumulation_steps",
}


@rule(
    code="DSG617",
    slug="broken-job-file",
    summary="the job file is missing, malformed or contradicts itself",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="the framework raises when it reads the file",
    when=(Troubles(*_WAYS_OUT),),
)
def broken_job_file(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report what the framework refuses in its file of arguments."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.REFUSED)
