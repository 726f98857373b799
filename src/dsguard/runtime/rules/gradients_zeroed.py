"""Gradients cleared in the middle of a window; see gradients_zeroed.md."""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter
from dsguard.runtime.moments import GradientsZeroed
from dsguard.runtime.rule import guard_rule
from dsguard.runtime.wording import micro_batches


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
    steps = run.engine.accumulation()
    pending = micro_batches(max(1, run.windows.open))
    if moment.lossy:
        message = f"{moment.what} threw away the gradients of {pending} of {steps}"
    else:
        message = (
            f"{moment.what} was called with {pending} of {steps} accumulated; at "
            f"ZeRO-{run.engine.zero_stage} it has no effect on them"
        )
    yield report(
        run.here(),
        message,
        Consequence.DIFFERS if moment.lossy else Consequence.NOTE,
        because=run.engine_says("gradient_accumulation_steps"),
        severity=Severity.ERROR if moment.lossy else Severity.INFO,
        help="leave it out: engine.step() clears the gradients after the optimizer's step",
    )
