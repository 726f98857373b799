"""Gradients cleared in the middle of a window; see gradients_zeroed.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import GradientsZeroed
from dsguard.runtime.rule import guard_rule
from dsguard.runtime.wording import LOOP, micro_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.fact import FactName
    from dsguard.model.rule import Reporter

_STEPS: FactName = "gradient_accumulation_steps"


@guard_rule(
    code="DSG922",
    slug="gradients-zeroed",
    summary="gradients are cleared before the optimizer has used them",
    severity=Severity.ERROR,
    since="0.1.0",
    on=GradientsZeroed,
)
def gradients_zeroed(moment: GradientsZeroed, report: Reporter) -> Iterator[Finding]:
    """An error where gradients were lost; a note where DeepSpeed keeps them elsewhere."""
    run = moment.run
    steps = run.accumulation()
    counted = moment.pending or max(1, run.windows.open)
    pending = f"{micro_batches(counted)} of {steps}" if steps > 1 else micro_batches(counted)
    where = f"at ZeRO-{run.engine.zero_stage} it" if run.engine.zero_stage else "it"
    severity = Severity.ERROR if moment.lossy else Severity.INFO
    if moment.lossy:
        message = f"{moment.what} threw away the gradients of {pending}"
    else:
        message = (
            f"{moment.what} was called with {pending} accumulated; {where} has no effect on them"
        )
    by_hand = run.engine.words is LOOP
    if by_hand and moment.lossy and counted < steps and run.windows.sizes.get(steps, 0):
        # Whole windows came before: an epoch that ends inside one, or a batch that is left out.
        severity = Severity.WARNING
    yield report(
        run.here(),
        message,
        Consequence.DIFFERS if moment.lossy else Consequence.NOTE,
        because=run.asked(_STEPS) or run.engine_says(_STEPS),
        severity=severity,
        help=f"clear gradients only after {run.engine.words.step}"
        if by_hand
        else "leave it out: engine.step() clears the gradients after the optimizer's step",
    )
