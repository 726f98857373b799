"""``engine.step()`` with nothing to step on; see step_without_backward.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import StepCalled
from dsguard.runtime.rule import guard_rule
from dsguard.runtime.run import Boundary
from dsguard.runtime.wording import LOOP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter


@guard_rule(
    code="DSG915",
    slug="step-without-backward",
    summary="engine.step() without a backward pass through the engine since the last one",
    severity=Severity.WARNING,
    since="0.1.0",
    on=StepCalled,
)
def step_without_backward(moment: StepCalled, report: Reporter) -> Iterator[Finding]:
    """The engine counts the call as a micro-batch all the same; an optimizer finds no gradients."""
    run = moment.run
    if run.windows.since_step:
        return
    if run.boundary is Boundary.CALLER and run.engine.words is LOOP:
        yield from _of_loop(moment, report)
    if run.boundary is not Boundary.ENGINE:
        return
    steps = run.engine.accumulation()
    yield report(
        run.here(),
        "engine.step() was called without a backward pass through the engine since its last call"
        + (f"; it counts as one of the {steps} micro-batches" if steps > 1 else ""),
        Consequence.DIFFERS,
        because=run.engine_says("gradient_accumulation_steps"),
        help="call engine.backward(loss) on a loss of engine(...), then engine.step(); skip both "
        "for a batch that is left out",
    )


def _of_loop(moment: StepCalled, report: Reporter) -> Iterator[Finding]:
    run = moment.run
    if moment.unseen:
        yield report(
            run.here(),
            f"the guard sees no backward pass: the model returns a {moment.unseen}, in which no "
            "tensor with a graph is found. Windows are not judged",
            Consequence.NOTE,
            severity=Severity.INFO,
            help="return tensors, or tuples, mappings or dataclasses of them",
        )
    elif run.windows.forwards_since_step:
        yield report(
            run.here(),
            "optimizer.step() was called without a backward pass through the model since its "
            "last call: it has nothing to step on, or old gradients",
            Consequence.DIFFERS,
            help="call loss.backward() on a loss of what the model returned, then optimizer.step()",
        )
