"""A CUDA_VISIBLE_DEVICES that the launcher drops; see visible_devices_ignored.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.context import LaunchContext, LauncherName, LaunchTrouble, TroubleKind
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Troubles
from dsguard.rules.launch._troubles import WayOut, report_troubles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


def _included(launch: LaunchContext, trouble: LaunchTrouble) -> str:
    accelerate = launch.launcher is LauncherName.ACCELERATE
    option = "--deepspeed_inclusion_filter" if accelerate else "--include"
    named = launch.launcher_arguments.get("hostfile", "deepspeed_hostfile")
    host = "localhost" if named is None and not accelerate else "<host>"
    variable = launch.variable("CUDA_VISIBLE_DEVICES")
    devices = variable.value if variable is not None else "<device>"
    return f"pick the devices with {option} {host}:{devices} and without other such options"


_WAYS_OUT: dict[TroubleKind, WayOut] = {"visible-devices-ignored": _included}


@rule(
    code="DSG609",
    slug="visible-devices-ignored",
    summary="CUDA_VISIBLE_DEVICES is dropped because a resource option is given",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="deepspeed.launcher.runner.main deletes the variable",
    when=(Troubles(*_WAYS_OUT),),
)
def visible_devices_ignored(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report a variable that has no effect beside a resource option."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.IGNORED)
