"""A config file and values of its own in one Accelerate YAML; see config_beside_values.md."""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.facts.case import Case
from dsguard.launch.context import TroubleKind
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.launch._troubles import WayOut, report_troubles

_WAYS_OUT: dict[TroubleKind, WayOut] = {
    "config-file-with-values": "move the values into the DeepSpeed config file",
}


@rule(
    code="DSG619",
    slug="config-beside-values",
    summary="deepspeed_config_file stands beside values that it replaces",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="DeepSpeedPlugin raises ValueError: When using deepspeed_config_file",
)
def config_beside_values(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report values that Accelerate refuses beside a config file."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.REFUSED)
