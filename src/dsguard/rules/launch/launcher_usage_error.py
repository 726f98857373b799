"""A command line that the launcher refuses; see launcher_usage_error.md."""

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

_COUNTING = ("gpus", "accelerators", "processes", "proc_per_node", "nodes", "machines")
"""What the launchers count, without the ``num_`` or ``n`` before it."""

_COUNTS = {
    LauncherName.DEEPSPEED: "--num_gpus (on each node) and --num_nodes",
    LauncherName.TORCHRUN: "--nproc_per_node and --nnodes",
    LauncherName.ACCELERATE: "--num_processes (in all) and --num_machines",
}


def _after_the_script(launch: LaunchContext, trouble: LaunchTrouble) -> str:
    written = trouble.location.source.slice(trouble.location.span)
    name = written.partition("=")[0].lstrip("-").replace("-", "_")
    counts = _COUNTS.get(launch.launcher)
    if counts is not None and name.removeprefix("num_").removeprefix("n") in _COUNTING:
        return f"{launch.launcher.value} counts with {counts}"
    return "options of the script go after the script's name"


_WAYS_OUT: dict[TroubleKind, WayOut] = {
    "unknown-option": _after_the_script,
    "misspelled-option": "",
    "removed-option": "leave it out, or stay with an older DeepSpeed",
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
    when=(Troubles(*_WAYS_OUT),),
)
def launcher_usage_error(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report options that the launcher refuses."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.REFUSED)
