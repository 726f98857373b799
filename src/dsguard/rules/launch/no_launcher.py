"""DeepSpeed started with plain python; see no_launcher.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.frontends.base import FrontEndName
from dsguard.launch.context import LauncherName
from dsguard.launch.jobs import swift as swift_jobs
from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Launched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_SET_BY_LAUNCHERS = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "LOCAL_RANK")


@rule(
    code="DSG615",
    slug="no-launcher",
    summary="plain python starts one process without the variables DeepSpeed needs",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="deepspeed.init_distributed raises ModuleNotFoundError: No module named 'mpi4py'",
    when=(Launched(LauncherName.PYTHON),),
)
def no_launcher(case: Case, report: Reporter) -> Iterator[Finding]:
    """Without RANK and its like DeepSpeed looks for MPI, which is seldom there."""
    launch = case.launch
    if launch is None or launch.launcher is not LauncherName.PYTHON or launch.script is None:
        return
    if launch.refusal is not None:
        return
    if case.named is None or any(launch.variable(name) for name in _SET_BY_LAUNCHERS):
        return
    if case.front_end is None or case.front_end.name is FrontEndName.LIGHTNING:
        return
    if case.script is not None and (case.script.ranks.starts or case.script.ranks.counts):
        return  # it starts the ranks itself, or sets the variables
    swift = any(job.name == swift_jobs.NAME for job in launch.jobs)
    started_by = "swift without NPROC_PER_NODE" if swift else "plain python"
    yield report(
        launch.launcher_location,
        f"{started_by} starts 1 process and sets none of RANK, WORLD_SIZE and MASTER_ADDR: "
        "DeepSpeed then looks for MPI and stops unless mpi4py is installed",
        Consequence.REFUSED,
        confidence=Confidence.MEDIUM,
        help="set NPROC_PER_NODE=1 before it, or as many as there are devices"
        if swift
        else f"start it with: deepspeed --num_gpus 1 {launch.script.text} ...",
    )
