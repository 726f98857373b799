"""A command line that the launcher refuses; see launcher_usage_error.md."""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.facts.case import Case
from dsguard.launch.context import TroubleKind
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.launch._troubles import report_troubles

_WAYS_OUT: dict[TroubleKind, str] = {
    "unknown-option": "options of the script go after the script's name",
    "removed-option": "leave it out, or use a release that has it",
    "ambiguous-option": "write the option out",
    "missing-value": "give the option its value",
    "unexpected-value": "leave the value out",
    "bad-value": "give a value that the launcher can read",
    "conflicting-options": "keep one of them",
    "no-script": "name the training script",
    "help-instead-of-launch": "leave the help option out",
    "num-processes-missing": "give --num_processes, the total over all machines",
    "machine-rank-missing": "give --machine_rank on each machine",
}


@rule(
    code="DSG604",
    slug="launcher-usage-error",
    summary="the launcher does not accept its own options",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="the launcher's parser exits with an error",
)
def launcher_usage_error(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report options that the launcher refuses."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.REFUSED)
