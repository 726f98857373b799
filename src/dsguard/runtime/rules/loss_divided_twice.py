"""The loss is divided by the accumulation twice; see loss_divided_twice.md."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.runtime.loss_graph import constant_divisors
from dsguard.runtime.moments import Backward, LossWeight
from dsguard.runtime.rule import guard_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter

_NEAR = 1e-3
_HALVES = 2


@guard_rule(
    code="DSG918",
    slug="loss-divided-twice",
    summary="the script divides the loss by the accumulation, and so does the engine",
    severity=Severity.ERROR,
    since="0.1.0",
    on=(Backward, LossWeight),
    probing=True,
)
def loss_divided_twice(moment: Backward | LossWeight, report: Reporter) -> Iterator[Finding]:
    """Look at the last operations on the loss, and at the gradient that reached the model's own."""
    run = moment.run
    steps = run.engine.accumulation()
    if steps < 2:
        return
    if run.windows.forwards_since_step > run.windows.since_step:
        return  # the mean of the losses of several forwards divides them as well
    certain = True
    if isinstance(moment, LossWeight):
        if "loss-divided-twice" in run.said and steps > _HALVES:
            return  # the last operations on the loss have told it
        if not math.isclose(moment.weight * steps * steps, 1, rel_tol=_NEAR):
            return
    else:
        if not moment.divided or not moment.through_engine:
            return
        divisors = constant_divisors(moment.loss)
        alone = any(math.isclose(divisor, steps, rel_tol=_NEAR) for divisor in divisors)
        if not alone and not math.isclose(math.prod(divisors), steps, rel_tol=_NEAR):
            return
        # The mean of two parts of a loss is a division by 2 as well.
        certain = steps > _HALVES
    yield report(
        run.here(),
        f"the loss is divided by {steps} before engine.backward(), which divides it by the "
        f"accumulation of {steps} again: gradients are {steps} times too small",
        Consequence.DIFFERS,
        because=run.engine_says("gradient_accumulation_steps"),
        severity=Severity.ERROR if certain else Severity.WARNING,
        confidence=Confidence.HIGH if certain else Confidence.MEDIUM,
        help="give engine.backward() the loss as it is, or pass scale_wrt_gas=False",
    )
