"""A loss divided by the accumulation count that DeepSpeed divides by; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Acts, Weighs
from dsguard.rules.script._loop import (
    accumulation,
    actions,
    is_accumulation,
    is_the_engines_count,
    number_of,
    once,
    owns_its_windows,
    reasons,
    runs_under_deepspeed,
)
from dsguard.script.declaration import Constant
from dsguard.script.loop.description import Action, Does, Given, Maker
from dsguard.script.loop.operators import is_above_one

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG801",
    slug="loss-divided-by-hand",
    summary="the loop divides the loss by the accumulation count, and so does the engine",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="the parameters move by 1/n of what the loop without the division moves them",
    when=(Weighs("gradient_accumulation_steps"), Acts(Does.BACKWARD)),
)
def loss_divided_by_hand(case: Case, report: Reporter) -> Iterator[Finding]:
    """Look at what the loss of each ``engine.backward`` was divided by on its way."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    steps = accumulation(case)
    for action in actions(case, Does.BACKWARD):
        engine = action.engine
        if action.loss is None or "scale_wrt_gas" in action.arguments:
            continue
        if not runs_under_deepspeed(case, engine) or owns_its_windows(case, engine):
            continue
        for given, blocks in action.loss.divisions:
            around = tuple(block for block in blocks if block not in action.blocks)
            if not is_above_one(around, given) or not _is_count(case, action, given, steps):
                continue
            named = is_accumulation(given)
            how = f"{steps}" if steps is not None else given.text
            yield report(
                given.location,
                f"the loss is divided by {_said(given, steps)} here and by {how} again in "
                f"{action.said}: gradients are 1/{how} of what they should be",
                Consequence.DIFFERS,
                because=reasons(case, "gradient_accumulation_steps"),
                help="leave the division to Accelerate"
                if engine.maker is Maker.ACCELERATE
                else "leave the division to the engine, or pass scale_wrt_gas=False to "
                "engine.backward",
                severity=Severity.ERROR if named else Severity.WARNING,
                confidence=Confidence.HIGH if named else Confidence.MEDIUM,
            )


def _is_count(case: Case, action: Action, given: Given, steps: int | None) -> bool:
    """Whether a divisor is the accumulation count, and that is more than 1."""
    if is_the_engines_count(case, given, action.engine):
        return steps != 1
    known = number_of(case, given, action.engine)
    if steps is None or steps < 2 or known is None or known.value != steps:
        return False
    # A 2 may be the mean of two losses.
    plain = isinstance(given.value, Constant) and not is_accumulation(given)
    is_mean = action.loss is not None and action.loss.is_sum
    return not plain or (steps > 2 and not is_mean)


def _said(given: Given, steps: int | None) -> str:
    if steps is None or given.text == str(steps):
        return given.text
    return f"{given.text} ({steps})"
