"""autotuning.enabled without --autotuning; see autotuning_not_started.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.context import LauncherName
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Given, Written
from dsguard.rules.zero._settings import place, switch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEY = "autotuning.enabled"


@rule(
    code="DSG327",
    slug="autotuning-not-started",
    summary="autotuning enabled in a launch that does not tune",
    severity=Severity.INFO,
    since="0.1.0",
    oracle="the engine never asks for autotuning.enabled",
    when=(Given("launch"), Written(_KEY)),
)
def autotuning_not_started(case: Case, report: Reporter) -> Iterator[Finding]:
    """The launcher decides by its own option."""
    if case.launch is None or switch(case, _KEY, False) is not True:
        return
    launch = case.launch
    if launch.launcher is not LauncherName.DEEPSPEED or launch.launcher_arguments.get("autotuning"):
        return
    yield report(
        place(case, _KEY),
        "autotuning.enabled is true, but deepspeed is not given --autotuning: nothing is tuned",
        Consequence.IGNORED,
        help="start with deepspeed --autotuning run (or tune), or remove the block",
    )
