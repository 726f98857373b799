"""Gradients cleared inside an accumulation window; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Acts
from dsguard.rules.script._loop import (
    accumulation,
    actions,
    branches,
    innermost,
    once,
    owns_its_windows,
    reasons,
    stage,
)
from dsguard.script.loop.description import Action, Does, Maker, Whose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG804",
    slug="gradients-zeroed-per-micro-batch",
    summary="zero_grad() before every micro-batch throws the accumulated gradients away",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("gradient_accumulation_steps", "zero_stage"),
    oracle="the update holds the last micro-batch only",
    when=(Acts(Does.ZERO_GRAD, Does.OPTIMIZER_ZERO_GRAD),),
)
def gradients_zeroed_per_micro_batch(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find ``zero_grad`` in the loop of the backward, where it clears what ZeRO keeps."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    steps, level = accumulation(case), stage(case)
    for action in actions(case, Does.ZERO_GRAD, Does.OPTIMIZER_ZERO_GRAD, maker=Maker.DEEPSPEED):
        if steps is None or steps < 2 or level is None:
            continue
        engine, loop = action.engine, innermost(action)
        if not _clears(case, action, level) or owns_its_windows(case, engine):
            continue
        together = [
            other
            for other in actions(case, Does.BACKWARD, engine=engine)
            if innermost(other) is loop and not branches(action, other.blocks)
        ]
        if loop is None or not together:
            continue
        yield report(
            action.location,
            f"{action.said} runs at every micro-batch and clears the gradients of the window: of "
            f"{steps} micro-batches only the last one reaches the optimizer",
            Consequence.DIFFERS,
            because=reasons(case, "gradient_accumulation_steps", "zero_stage"),
            help="leave it out: engine.step() clears the gradients when it has used them",
        )


def _clears(case: Case, action: Action, level: int) -> bool:
    """Whether this call clears what the stage accumulates in."""
    if action.does is Does.ZERO_GRAD:
        return level in (0, 1)
    if action.whose is Whose.RETURNED:
        return level in (0, 1, 3)
    # Without 16-bit copies, the engine's gradients are those of the script's optimizer.
    return level == 0 and case.facts.value("precision") == "fp32"
