"""An optimizer stepped without its engine; see step_around_engine.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import SteppedAround
from dsguard.runtime.rule import guard_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter


@guard_rule(
    code="DSG921",
    slug="step-around-engine",
    summary="an optimizer is stepped instead of the engine",
    severity=Severity.ERROR,
    since="0.1.0",
    on=SteppedAround,
)
def step_around_engine(moment: SteppedAround, report: Reporter) -> Iterator[Finding]:
    """Say what the call does, which depends on who holds the weights."""
    run = moment.run
    stage = run.engine.zero_stage
    if moment.wrapper or stage == 0:
        effect = (
            "gradients are not clipped, and steps and learning rate are not counted"
            if stage
            else "gradients are not averaged over the ranks, and nothing is counted"
        )
    else:
        effect = f"under ZeRO-{stage} the model's weights are not the ones it holds"
    yield report(
        run.here(),
        f"{moment.what} was called instead of engine.step(): {effect}",
        Consequence.DIFFERS,
        help="call engine.step() after every micro-batch and leave the optimizer alone",
    )
