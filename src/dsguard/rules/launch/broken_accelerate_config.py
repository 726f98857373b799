"""An Accelerate config file that cannot be used; see broken_accelerate_config.md."""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.facts.case import Case
from dsguard.launch.context import TroubleKind
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.launch._troubles import report_troubles

_WAYS_OUT: dict[TroubleKind, str] = {
    "accelerate-config-missing": "name an existing file, or make one with: accelerate config",
    "accelerate-config-syntax": "repair the YAML",
    "accelerate-config-key": "remove the key",
    "accelerate-config-value": "give a value that Accelerate knows",
}


@rule(
    code="DSG610",
    slug="broken-accelerate-config",
    summary="the config file of accelerate launch is missing or refused",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="accelerate launch raises ValueError",
)
def broken_accelerate_config(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report what Accelerate refuses in its own config file."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.REFUSED)
