"""Scaling before a reduce-scatter; see gradient_scaling_with_reduce_scatter.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Is, Written
from dsguard.rules.zero._settings import (
    number,
    place,
    reason,
    stage_of,
    stage_reason,
    switch,
    zero,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_REDUCE_SCATTER = zero("reduce_scatter")
_FACTOR = "gradient_predivide_factor"
_PRESCALE = "prescale_gradients"


@rule(
    code="DSG307",
    slug="gradient-scaling-with-reduce-scatter",
    summary="gradients scaled before a reduce-scatter",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage",),
    oracle="deepspeed.initialize raises AssertionError: ... is not yet supported",
    when=(Is("zero_stage", 2, 3), Written(_FACTOR, _PRESCALE)),
)
def gradient_scaling_with_reduce_scatter(case: Case, report: Reporter) -> Iterator[Finding]:
    """Both keys move the division by the world size before the reduction."""
    if stage_of(case) not in (2, 3) or switch(case, _REDUCE_SCATTER, True) is not True:
        return
    because = (*stage_reason(case), *reason(case, _REDUCE_SCATTER))
    default = "" if reason(case, _REDUCE_SCATTER) else " (the default)"
    factor = number(case, _FACTOR)
    asked: list[tuple[str, str]] = []
    if factor is not None and factor != 1:
        asked.append((_FACTOR, f"{_FACTOR} is {factor:g}"))
    if switch(case, _PRESCALE, False):
        asked.append((_PRESCALE, f"{_PRESCALE} is true"))
    for key, words in asked:
        yield report(
            place(case, key),
            f"{words}, but stage {stage_of(case)} with reduce_scatter on{default} supports no "
            "scaling before the reduction",
            Consequence.LATE,
            because=because,
            help=f"remove {key}, or set zero_optimization.reduce_scatter to false",
        )
