"""DeepSpeed asked for in a single process; see deepspeed_without_launcher.md."""

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


def _forced(launch: LaunchContext, trouble: LaunchTrouble) -> str:
    at = launch.launcher_location
    return f"start it with: FORCE_TORCHRUN=1 {at.source.slice(at.span)} ..."


_WAYS_OUT: dict[TroubleKind, WayOut] = {"deepspeed-without-launcher": _forced}


@rule(
    code="DSG621",
    slug="deepspeed-without-launcher",
    summary="the framework starts one process and DeepSpeed needs a launcher",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="LLaMA-Factory raises ValueError: Please use `FORCE_TORCHRUN=1`",
    when=(Troubles(*_WAYS_OUT),),
)
def deepspeed_without_launcher(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report a framework that would start DeepSpeed without a launcher."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.REFUSED)
