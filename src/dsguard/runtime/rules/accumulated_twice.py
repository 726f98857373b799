"""The loop and the engine both accumulate; see accumulated_twice.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import StepCalled
from dsguard.runtime.rule import guard_rule
from dsguard.runtime.run import Boundary
from dsguard.runtime.wording import ordinal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter


@guard_rule(
    code="DSG912",
    slug="accumulated-twice",
    summary="engine.step() is called once per window although the engine counts its calls",
    severity=Severity.ERROR,
    since="0.1.0",
    on=StepCalled,
)
def accumulated_twice(moment: StepCalled, report: Reporter) -> Iterator[Finding]:
    """As many backward passes as the accumulation, or a multiple, before one ``step()``."""
    run = moment.run
    backwards = run.windows.since_step
    steps = run.engine.accumulation()
    if backwards < 2 or steps < 2 or backwards % steps:
        return
    if run.boundary is not Boundary.ENGINE:
        return
    lost = ""
    if run.engine.keeps_last_backward_only():
        lost = f", and ZeRO-{run.engine.zero_stage} keeps only the last gradient of each call"
    yield report(
        run.here(),
        f"engine.step() is called after {backwards} backward passes, and the engine steps the "
        f"optimizer at every {ordinal(steps)} call: one step in {backwards * steps} "
        f"micro-batches{lost}",
        Consequence.DIFFERS,
        because=run.engine_says("gradient_accumulation_steps"),
        help="call engine.step() after every micro-batch: the engine knows which call is the "
        "boundary",
    )
