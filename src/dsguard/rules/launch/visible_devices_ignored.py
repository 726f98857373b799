"""A CUDA_VISIBLE_DEVICES that the launcher drops; see visible_devices_ignored.md."""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.facts.case import Case
from dsguard.launch.context import TroubleKind
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.launch._troubles import report_troubles

_WAYS_OUT: dict[TroubleKind, str] = {
    "visible-devices-ignored": "select the devices with --include localhost:<device>,<device>",
}


@rule(
    code="DSG609",
    slug="visible-devices-ignored",
    summary="CUDA_VISIBLE_DEVICES is dropped because a resource option is given",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="deepspeed.launcher.runner.main deletes the variable",
)
def visible_devices_ignored(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report a variable that has no effect beside a resource option."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.IGNORED)
