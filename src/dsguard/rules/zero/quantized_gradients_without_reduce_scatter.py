"""Quantized gradients without reduce-scatter; see quantized_gradients_without_reduce_scatter.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Is, Written
from dsguard.rules.zero._settings import place, reason, release, stage_of, switch, zero

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_QUANTIZED = zero("zero_quantized_gradients")
_REDUCE_SCATTER = zero("reduce_scatter")
_SINCE = Version("0.10.0")
"""The release that brought the key."""


@rule(
    code="DSG311",
    slug="quantized-gradients-without-reduce-scatter",
    summary="quantized gradients with reduce_scatter off",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage",),
    oracle="deepspeed.initialize raises AssertionError: when enable all_to_all_reduce",
    when=(Is("zero_stage", 3), Written(_QUANTIZED)),
)
def quantized_gradients_without_reduce_scatter(case: Case, report: Reporter) -> Iterator[Finding]:
    """The quantized all-to-all takes the place of the reduce-scatter."""
    if stage_of(case) != 3 or switch(case, _QUANTIZED, False) is not True:
        return
    if switch(case, _REDUCE_SCATTER, True) is not False or release(case) < _SINCE:
        return
    yield report(
        place(case, _REDUCE_SCATTER),
        "reduce_scatter is false, but zero_quantized_gradients needs it",
        Consequence.LATE,
        because=reason(case, _QUANTIZED),
        help="remove reduce_scatter (true is the default), or zero_quantized_gradients",
    )
