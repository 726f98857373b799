"""A key of a job file that nobody reads; see job_key_ignored.md."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from dsguard.launch.launchers.accelerate_options import OPTIONS
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Troubles
from dsguard.rules.launch._troubles import WayOut, report_troubles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.launch.context import LaunchContext, LaunchTrouble, TroubleKind


def _meant(launch: LaunchContext, trouble: LaunchTrouble) -> str:
    written = trouble.location.source.slice(trouble.location.span).strip("\"'")
    known = sorted({option.dest for option in OPTIONS.options})
    close = get_close_matches(written, known, n=1, cutoff=0.75)
    if close:
        return f"did you mean {close[0]}?"
    return "remove it; DeepSpeed's own keys go into the file that deepspeed_config_file names"


_WAYS_OUT: dict[TroubleKind, WayOut] = {
    "job-key-ignored": _meant,
    "nvme-path-ignored": "write nvme_path into a DeepSpeed config and name it with "
    "deepspeed_config_file",
}


@rule(
    code="DSG618",
    slug="job-key-ignored",
    summary="a key of the job file has no effect",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle=None,
    when=(Troubles(*_WAYS_OUT),),
)
def job_key_ignored(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report keys of a job file that the framework drops."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.IGNORED)
