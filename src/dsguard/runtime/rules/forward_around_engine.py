"""A forward of the module instead of the engine; see forward_around_engine.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.runtime.moments import Backward, StepCalled
from dsguard.runtime.rule import guard_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter

_IN_A_ROW = 3


@guard_rule(
    code="DSG920",
    slug="forward-around-engine",
    summary="engine.module(...) is trained instead of engine(...)",
    severity=Severity.ERROR,
    since="0.1.0",
    on=(Backward, StepCalled),
)
def forward_around_engine(moment: Backward | StepCalled, report: Reporter) -> Iterator[Finding]:
    """A backward pass through the engine in a window that has seen no forward of it.

    In a loop without an engine: steps on gradients in a row that have seen no forward.
    """
    run = moment.run
    if isinstance(moment, StepCalled):
        yield from _of_loop(moment, report)
        return
    if not moment.through_engine or run.windows.forwards or run.accumulation() < 2:
        return
    harm = run.engine.needs_engine_forward()
    if not harm:
        return
    yield report(
        run.here(),
        f"engine.backward(loss) was given a loss that engine(...) has not made: {harm}",
        Consequence.DIFFERS,
        help="call engine(...) instead of engine.module(...) or the model itself",
    )


def _of_loop(moment: StepCalled, report: Reporter) -> Iterator[Finding]:
    run = moment.run
    harm = run.engine.needs_engine_forward()
    if not harm or moment.around != _IN_A_ROW:
        return
    yield report(
        run.here(),
        f"the last {_IN_A_ROW} optimizer steps had gradients, and no forward went through the "
        f"{run.engine.kind} that is guarded: {harm}",
        Consequence.DIFFERS,
        severity=Severity.WARNING,
        confidence=Confidence.MEDIUM,
        help="call the wrapped model, not its .module, and guard what the loop calls; a model "
        "compiled as part of a bigger one cannot be followed",
    )
