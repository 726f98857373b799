"""A number that is text in a job file; see number_as_text.md."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Reads, Troubles
from dsguard.rules.launch._troubles import WayOut, report_troubles
from dsguard.script.script import ParserKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.launch.context import LaunchContext, LaunchTrouble, TroubleKind

_EXPONENT = re.compile(r"([-+]?\d+)(\.\d*)?[eE]([-+]?)(\d+)")


def _number(launch: LaunchContext, trouble: LaunchTrouble) -> str:
    written = trouble.location.source.slice(trouble.location.span)
    found = _EXPONENT.fullmatch(written)
    if found is None:
        return "write it without quotes"
    whole, fraction, sign, exponent = found.groups()
    return f"write {whole}{fraction or '.0'}e{sign or '+'}{exponent}"


_WAYS_OUT: dict[TroubleKind, WayOut] = {"job-number-is-text": _number}


@rule(
    code="DSG620",
    slug="number-as-text",
    summary="a number of the job file is text",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="HfArgumentParser hands the text on, and torch raises TypeError over it",
    when=(Reads("script"), Troubles(*_WAYS_OUT)),
)
def number_as_text(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report numbers that stay text; only HfArgumentParser is known not to convert them."""
    script = case.script
    certain = script is not None and script.parser is ParserKind.HF
    confidence = Confidence.HIGH if certain else Confidence.MEDIUM
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.LATE, confidence=confidence)
