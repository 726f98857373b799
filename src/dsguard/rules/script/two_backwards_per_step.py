"""Two losses, two backwards, one step; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.frontends.base import FrontEndName
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules._accelerate import steps_the_engine
from dsguard.rules.conditions import Either, Is, Weighs
from dsguard.rules.script._loop import (
    accumulation,
    actions,
    branches,
    in_script,
    innermost,
    inside,
    loop_of,
    once,
    owns_its_windows,
    reasons,
    release,
    runs_under_deepspeed,
    stage,
)
from dsguard.rules.script.accumulated_by_hand import LAST_ONLY_SINCE, SUMMED_UNTIL
from dsguard.script.loop.description import Action, Block, Context, Does, Engine, Maker, Meaning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG811",
    slug="two-backwards-per-step",
    summary="two backwards before one step: ZeRO keeps the second only, Accelerate steps twice",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="the update holds the second loss only; Accelerate takes two steps",
    when=(
        Weighs("front_end", "zero_stage", "gradient_accumulation_steps"),
        Either(Is("front_end", FrontEndName.ACCELERATE), Is("gradient_accumulation_steps", 1)),
        Either(Is("front_end", FrontEndName.ACCELERATE), Is("zero_stage", 1, 2)),
    ),
)
def two_backwards_per_step(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find two backwards of one engine in a row, with no step between them."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    yield from _of_accelerate(case, report)
    level, version = stage(case), release(case)
    if accumulation(case) != 1 or level not in (1, 2) or version < SUMMED_UNTIL:
        return
    for engine in loop_of(case).engines:
        if engine.maker is not Maker.DEEPSPEED or owns_its_windows(case, engine):
            continue
        for first, second, step in _in_a_row(case, engine):
            late = version < LAST_ONLY_SINCE
            what = (
                "it stops with TypeError"
                if late
                else f"its gradient replaces that of {first.said}, which never reaches the "
                "optimizer"
            )
            yield report(
                second.location,
                f"{second.said} is the second backward before {step.said}: at ZeRO stage {level} "
                f"{what}",
                Consequence.LATE if late else Consequence.DIFFERS,
                because=(
                    *reasons(case, "gradient_accumulation_steps", "zero_stage"),
                    in_script("first backward", first.said, first.location),
                ),
                help="add the losses and call backward once",
            )


def _of_accelerate(case: Case, report: Reporter) -> Iterator[Finding]:
    """``accelerator.backward`` steps the engine itself, so the second one is a step of its own."""
    if not steps_the_engine(case):
        return
    for engine in loop_of(case).engines:
        if engine.maker is not Maker.ACCELERATE or not runs_under_deepspeed(case, engine):
            continue
        for first, second, step in _in_a_row(case, engine):
            yield report(
                second.location,
                f"{second.said} is the second backward before {step.said}: under DeepSpeed each of "
                "them ends with an optimizer step of its own",
                Consequence.DIFFERS,
                because=(in_script("first backward", first.said, first.location),),
                help="add the losses and call backward once",
            )


def _in_a_row(case: Case, engine: Engine) -> Iterator[tuple[Action, Action, Action]]:
    """Two backwards and a step that stand in one block, in this order."""
    row: list[Action] = []
    for action in actions(case, Does.BACKWARD, Does.STEP, Does.OPTIMIZER_STEP, engine=engine):
        loop = innermost(action)
        if loop is None or inside(action, Context.NO_SYNC, Context.COALESCE):
            row = []
            continue
        if row and (innermost(row[-1]) is not loop or _branches(action) != _branches(row[-1])):
            row = []
        if action.does is Does.BACKWARD:
            row.append(action)
            continue
        if len(row) == 2:
            yield row[0], row[1], action
        row = []


def _branches(action: Action) -> tuple[Block, ...]:
    """The branches around an action, but for "where a window ends"."""
    return tuple(
        block
        for block in branches(action)
        if not block.conditions or any(c.meaning is not Meaning.BOUNDARY for c in block.conditions)
    )
