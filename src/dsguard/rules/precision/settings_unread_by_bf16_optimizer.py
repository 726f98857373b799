"""ZeRO settings that BF16_Optimizer does not read; see settings_unread_by_bf16_optimizer.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.dtypes import canonical
from dsguard.facts.values import unread, written
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_UNREAD = {"overlap_comm": False, "reduce_bucket_size": 500_000_000}
"""The settings, with what they are where nobody writes them."""


@rule(
    code="DSG409",
    slug="settings-unread-by-bf16-optimizer",
    summary="ZeRO stage 1 settings that bf16 with fp32 accumulation does not read",
    severity=Severity.INFO,
    since="0.1.0",
    needs=("precision", "zero_stage", "offload_optimizer"),
    oracle="the engine's optimizer is BF16_Optimizer instead of DeepSpeedZeroOptimizer",
    when=(Written("data_types.grad_accum_dtype"),),
)
def settings_unread_by_bf16_optimizer(case: Case, report: Reporter) -> Iterator[Finding]:
    """Stage 1, bf16 and fp32 accumulation go to another optimizer than ZeRO's own."""
    facts = case.facts
    accumulates = written(case.document, "data_types.grad_accum_dtype")
    if accumulates is None or canonical(accumulates.value) != "fp32":
        return
    if facts.value("precision") != "bf16" or facts.value("zero_stage") != 1:
        return
    if facts.value("offload_optimizer") in ("cpu", "nvme"):
        return
    for name, default in _UNREAD.items():
        value = written(case.document, f"zero_optimization.{name}")
        if value is None or value.origin.location is None or value.value in (default, "auto"):
            continue
        if unread(case.document, f"zero_optimization.{name}") is not None:
            continue
        yield report(
            value.origin.location,
            f"{name} has no effect: at stage 1, bf16 with fp32 accumulation is run by "
            "BF16_Optimizer, which does not read it",
            Consequence.IGNORED,
            because=(Because("data_types.grad_accum_dtype", "fp32", accumulates.origin),),
            help=f"use stage 2 if you need {name}, or leave it out",
        )
