"""Several backwards for one step of an engine that accumulates nothing; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Is
from dsguard.rules.script._loop import (
    accumulation,
    actions,
    branches,
    every_nth,
    in_script,
    innermost,
    inside,
    number_of,
    once,
    owns_its_windows,
    reasons,
    release,
    stage,
)
from dsguard.script.loop.description import Action, Around, Context, Does, Maker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

SUMMED_UNTIL = Version("0.17.6")
"""Before this release the gradients of several backwards were added up at ZeRO stage 1 and 2."""

LAST_ONLY_SINCE = Version("0.18.3")
"""From this release the last backward silently replaces the others; between, it stopped."""


@rule(
    code="DSG806",
    slug="accumulated-by-hand",
    summary="several backwards per step with an accumulation count of 1: ZeRO keeps the last",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("gradient_accumulation_steps", "zero_stage"),
    oracle="the update holds the last micro-batch only",
    when=(Is("gradient_accumulation_steps", 1), Is("zero_stage", 1, 2)),
)
def accumulated_by_hand(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find windows of the script's own where DeepSpeed knows of none."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    level, version = stage(case), release(case)
    if accumulation(case) != 1 or level not in (1, 2) or version < SUMMED_UNTIL:
        return
    for action in actions(case, Does.STEP, maker=Maker.DEEPSPEED):
        engine = action.engine
        if owns_its_windows(case, engine):
            continue
        for backward in actions(case, Does.BACKWARD, engine=engine):
            if inside(backward, Context.NO_SYNC, Context.COALESCE):
                continue
            several = window(case, action, backward)
            if several is None:
                continue
            if version < LAST_ONLY_SINCE:
                what, consequence = "the second one stops with TypeError", Consequence.LATE
            else:
                what = "only the gradient of the last one reaches the optimizer"
                consequence = Consequence.DIFFERS
            yield report(
                backward.location,
                f"{several} for one {action.said}, but gradient_accumulation_steps is 1: at ZeRO "
                f"stage {level} {what}",
                consequence,
                because=(
                    *reasons(case, "gradient_accumulation_steps", "zero_stage"),
                    in_script("step", action.said, action.location),
                ),
                help="put the number of backwards into gradient_accumulation_steps, call step() "
                "after each of them and leave the division to the engine",
            )


def window(case: Case, step: Action, backward: Action) -> str | None:
    """How many backwards a step follows, in words; None where it may be one."""
    loop = innermost(backward)
    if loop is None:
        return None
    if innermost(step) is loop:
        nth = every_nth(step, backward.blocks)
        if nth is None or nth.amount is None or branches(backward, step.blocks):
            return None
        known = number_of(case, nth.amount, step.engine)
        if known is not None:
            return f"{known.value} backwards" if known.value > 1 else None
        return f"{nth.amount.text} backwards"
    own = backward.blocks[backward.blocks.index(loop) :]
    outer = backward.blocks[: backward.blocks.index(loop)]
    is_inner = tuple(step.blocks[: len(outer)]) == outer and loop not in step.blocks
    same_turn = is_inner and any(block.around is Around.LOOP for block in outer)
    if not same_turn or len(own) > 1 or len(step.blocks) > len(outer):
        return None
    return "several backwards"
