"""A number that YAML reads as text; see number_as_text.md."""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.facts.case import Case
from dsguard.launch.context import TroubleKind
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.launch._troubles import WayOut, report_troubles

_WAYS_OUT: dict[TroubleKind, WayOut] = {
    "job-number-is-text": "write a dot, such as 1.0e-5",
}


@rule(
    code="DSG620",
    slug="number-as-text",
    summary="a number of the job file is a string",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="yaml.safe_load gives a str",
)
def number_as_text(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report numbers that YAML 1.1 takes for strings."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.DIFFERS)
