"""A learning rate of the optimizer that the scheduler replaces; see overridden_learning_rate.md."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.blocks import block, trust_in_blocks
from dsguard.facts.values import is_number
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.schema.schedulers import PEAK, PEAK_FROM_OPTIMIZER_SINCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.model.fact import Known


@rule(
    code="DSG511",
    slug="overridden-learning-rate",
    summary="warmup_max_lr differs from the optimizer's lr, which then has no effect",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("learning_rate",),
    oracle="after the warm-up the optimizer's param groups have warmup_max_lr",
    when=(Written("scheduler"), Written("optimizer.params.lr")),
)
def overridden_learning_rate(case: Case, report: Reporter) -> Iterator[Finding]:
    """Written numbers, or DeepSpeed's own 0.001 where warmup_max_lr is absent."""
    scheduler = block(case, "scheduler")
    rate = case.facts.known("learning_rate")
    if scheduler is None or scheduler.type not in ("WarmupLR", "WarmupDecayLR"):
        return
    optimizer = block(case, "optimizer")
    if optimizer is None or "lr" not in optimizer.params or not is_number(rate.value):
        return
    if "warmup_max_lr" in scheduler.params:
        peak = scheduler.number("warmup_max_lr")
        at, default = scheduler.at("warmup_max_lr"), ""
    else:
        peak = _default_peak(scheduler.type, Version(case.target.version))
        at, default = scheduler.type_at, ", the default because warmup_max_lr is not given"
    if peak is None or math.isclose(peak, rate.value, rel_tol=1e-9):
        return
    yield report(
        at,
        f"{scheduler.type} warms up to {peak:g}{default}, and the optimizer's lr of "
        f"{rate.value:g} has no effect",
        Consequence.DIFFERS,
        because=_because(rate),
        confidence=trust_in_blocks(case),
        help=f'write the rate you want in both places, such as "warmup_max_lr": {rate.value:g}',
    )


def _default_peak(kind: str, target: Version) -> float | None:
    """None where the optimizer's own rate is taken."""
    if kind == "WarmupLR" and target >= PEAK_FROM_OPTIMIZER_SINCE:
        return None
    return PEAK


def _because(rate: Known) -> tuple[Because, ...]:
    return (Because.of("learning_rate", rate),)
