"""A config file and values of its own in one Accelerate YAML; see config_beside_values.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Troubles
from dsguard.rules.launch._troubles import WayOut, report_troubles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.launch.context import TroubleKind

_KIND: TroubleKind = "config-file-with-values"
_WAYS_OUT: dict[TroubleKind, WayOut] = {
    _KIND: "keep them in one place: the DeepSpeed config, or this file without naming a config",
}


@rule(
    code="DSG619",
    slug="config-beside-values",
    summary="a DeepSpeed config is named beside values that belong into it",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="DeepSpeedPlugin raises ValueError: When using `deepspeed_config_file`",
    when=(Troubles(*_WAYS_OUT),),
)
def config_beside_values(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report values that Accelerate refuses beside a config file.

    The script's own ``DeepSpeedPlugin`` does so; a launch that stops before is another matter.
    """
    if case.launch is None or case.launch.refusal is None or case.launch.refusal.kind != _KIND:
        return
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.REFUSED)
