"""``engine.step()`` only where the script's own window ends; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Acts, Weighs
from dsguard.rules.script._loop import (
    accumulation,
    actions,
    conditions,
    every_nth,
    excludes_any,
    in_script,
    innermost,
    inside,
    is_the_engines_count,
    number_of,
    once,
    owns_its_windows,
    reasons,
)
from dsguard.script.loop.description import Action, Context, Does, Maker, Meaning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG805",
    slug="engine-stepped-on-own-boundary",
    summary="engine.step() is called once a window, but it counts its calls itself",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="the optimizer steps n times less often than the loop asks for, or never",
    when=(Weighs("gradient_accumulation_steps"), Acts(Does.STEP)),
)
def engine_stepped_on_own_boundary(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find ``engine.step()`` under a condition that its backward does not have."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    steps = accumulation(case)
    for action in actions(case, Does.STEP, maker=Maker.DEEPSPEED):
        engine = action.engine
        others = actions(case, Does.STEP, Does.ESCAPE, engine=engine)
        if owns_its_windows(case, engine) or excludes_any(action, others):
            continue
        for backward in actions(case, Does.BACKWARD, engine=engine):
            if innermost(backward) is not innermost(action) or innermost(action) is None:
                continue
            if inside(backward, Context.NO_SYNC, Context.COALESCE):
                continue
            yield from _judge(case, report, action, backward, steps)


def _judge(
    case: Case, report: Reporter, action: Action, backward: Action, steps: int | None
) -> Iterator[Finding]:
    help = "call it after every backward: it steps the optimizer when its own window is full"
    because = reasons(case, "gradient_accumulation_steps")
    found = conditions(action, backward.blocks)
    if len(found) == 1 and found[0].meaning is Meaning.BOUNDARY and found[0].holds:
        if steps is None or steps < 2:
            return
        yield report(
            action.location,
            f"{action.said} is only called where {found[0].text} is true, which only turns true "
            "by calls of step(): the optimizer never steps",
            Consequence.DIFFERS,
            because=(*because, in_script("condition", found[0].text, found[0].location)),
            help=help,
        )
        return
    nth = every_nth(action, backward.blocks)
    if nth is None or nth.amount is None:
        return
    known = number_of(case, nth.amount, action.engine)
    same = is_the_engines_count(case, nth.amount, action.engine)
    if steps == 1 or (steps is None and not same) or (known is not None and known.value == 1):
        return
    every = str(known.value) if known is not None else nth.amount.text
    counted = str(steps) if steps is not None else nth.amount.text
    total = f" = {known.value * steps}" if known is not None and steps is not None else ""
    yield report(
        action.location,
        f"{action.said} is called once in {every} micro-batches, and DeepSpeed counts {counted} of "
        f"these calls: the optimizer steps once in {every} x {counted}{total} micro-batches",
        Consequence.DIFFERS,
        because=(*because, in_script("own window", every, nth.location)),
        help=help,
        confidence=Confidence.HIGH if known is not None or same else Confidence.MEDIUM,
    )
