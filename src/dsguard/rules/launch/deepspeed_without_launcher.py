"""DeepSpeed asked for in a single process; see deepspeed_without_launcher.md."""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.facts.case import Case
from dsguard.launch.context import TroubleKind
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.launch._troubles import WayOut, report_troubles

_WAYS_OUT: dict[TroubleKind, WayOut] = {
    "deepspeed-without-launcher": "set FORCE_TORCHRUN=1, or NPROC_PER_NODE for ms-swift",
}


@rule(
    code="DSG621",
    slug="deepspeed-without-launcher",
    summary="the framework starts one process and DeepSpeed needs a launcher",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="the framework raises ValueError",
)
def deepspeed_without_launcher(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report a framework that would start DeepSpeed without a launcher."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.REFUSED)
