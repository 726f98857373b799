"""torch_autocast together with ZeRO++'s quantized weights.

See autocast_with_quantized_weights.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.values import written
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_SINCE = Version("0.17.2")


@rule(
    code="DSG405",
    slug="autocast-with-quantized-weights",
    summary="torch_autocast and zero_quantized_weights are both on",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="deepspeed.initialize raises AssertionError: Cannot enable both torch autocast and "
    "zero quantized weights",
    when=(Written("torch_autocast.enabled"), Written("zero_optimization.zero_quantized_weights")),
)
def autocast_with_quantized_weights(case: Case, report: Reporter) -> Iterator[Finding]:
    """Both switches as written."""
    autocast = written(case.document, "torch_autocast.enabled")
    quantized = written(case.document, "zero_optimization.zero_quantized_weights")
    if autocast is None or quantized is None or Version(case.target.version) < _SINCE:
        return
    if autocast.value is not True or quantized.value is not True:
        return
    if quantized.origin.location is None:
        return
    yield report(
        quantized.origin.location,
        "quantized weights and torch_autocast exclude each other; deepspeed.initialize stops with "
        "AssertionError",
        Consequence.LATE,
        because=(Because("torch_autocast.enabled", autocast.value, autocast.origin),),
        help="switch one of the two off; bf16 goes with quantized weights",
    )
