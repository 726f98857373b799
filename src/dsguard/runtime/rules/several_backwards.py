"""Several backward passes for one step; see several_backwards.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import StepCalled
from dsguard.runtime.rule import guard_rule
from dsguard.runtime.run import Boundary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter


@guard_rule(
    code="DSG913",
    slug="several-backwards",
    summary="several backward passes before one engine.step()",
    severity=Severity.ERROR,
    since="0.1.0",
    on=StepCalled,
)
def several_backwards(moment: StepCalled, report: Reporter) -> Iterator[Finding]:
    """More than one backward pass in one call, where the engine counts calls."""
    run = moment.run
    windows = run.windows
    backwards, steps = windows.since_step, run.engine.accumulation()
    if backwards < 2 or run.boundary is not Boundary.ENGINE:
        return
    if steps > 1 and backwards % steps == 0:
        return  # accumulated-twice says more
    if windows.unsynchronised_since_step and steps == 1:
        return  # no_sync() and coalesce_grad_reduction() are made for this
    by_hand = windows.forwards_since_step > 1
    if run.engine.keeps_last_backward_only():
        severity, consequence = Severity.ERROR, Consequence.DIFFERS
        outcome = f"ZeRO-{run.engine.zero_stage} keeps only the gradient of the last one"
    elif by_hand:
        severity, consequence = Severity.WARNING, Consequence.DIFFERS
        outcome = f"the engine counts them as one micro-batch of its {steps}"
    else:
        severity, consequence = Severity.INFO, Consequence.NOTE
        outcome = "their gradients are added"
    yield report(
        run.here(),
        f"{backwards} backward passes before one engine.step(), with accumulation {steps}: "
        f"{outcome}",
        consequence,
        because=run.engine_says("gradient_accumulation_steps"),
        severity=severity,
        help=f"set gradient_accumulation_steps to {backwards * steps} in the config and call "
        "engine.step() after every micro-batch"
        if by_hand
        else "add the losses up and call engine.backward() once",
    )
