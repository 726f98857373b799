"""Gradients accumulated in another type than the model's, without ZeRO.

See accumulation_dtype_without_zero.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.dtypes import canonical
from dsguard.facts.values import written
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEY = "data_types.grad_accum_dtype"


@rule(
    code="DSG402",
    slug="accumulation-dtype-without-zero",
    summary="grad_accum_dtype differs from the training precision at ZeRO stage 0",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("precision", "zero_stage"),
    oracle="deepspeed.initialize raises NotImplementedError: unsupported mix of model_dtype and "
    "grad_accum_dtype",
    when=(Written(_KEY),),
)
def accumulation_dtype_without_zero(case: Case, report: Reporter) -> Iterator[Finding]:
    """Stage 0 has one type for both; ZeRO's optimizers take another one."""
    value = written(case.document, _KEY)
    precision, stage = case.facts.known("precision"), case.facts.known("zero_stage")
    if value is None or value.origin.location is None or stage.value != 0:
        return
    accumulates = canonical(value.value)
    if accumulates is None or accumulates == precision.value:
        return
    yield report(
        value.origin.location,
        f"gradients are accumulated in {accumulates} and the model trains in {precision.value}, "
        "which DeepSpeed only does with ZeRO; deepspeed.initialize stops with "
        "NotImplementedError",
        Consequence.LATE,
        because=(Because.of("precision", precision), Because.of("zero_stage", stage)),
        help="set zero_optimization.stage to 1 or more, or remove grad_accum_dtype",
    )
