"""A key of a job file that nobody reads; see job_key_ignored.md."""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.facts.case import Case
from dsguard.launch.context import TroubleKind
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.launch._troubles import WayOut, report_troubles

_WAYS_OUT: dict[TroubleKind, WayOut] = {
    "job-key-ignored": "remove the key, or spell it as the framework does",
    "nvme-path-ignored": "give nvme_path in a DeepSpeed config file",
}


@rule(
    code="DSG618",
    slug="job-key-ignored",
    summary="a key of the job file has no effect",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle=None,
)
def job_key_ignored(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report keys of a job file that the framework drops."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.IGNORED)
