"""Evaluation mode that nothing switches off again; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Acts
from dsguard.rules.script._loop import actions, in_script, once, runs_under_deepspeed
from dsguard.script.loop.description import Action, Around, Block, Does

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG812",
    slug="evaluation-left-on",
    summary="eval() in the training loop, and no train() after it",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="the module trains with training == False",
    when=(Acts(Does.EVAL_MODE),),
)
def evaluation_left_on(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find ``eval()`` in a loop that trains and never calls ``train()``."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    for action in actions(case, Does.EVAL_MODE):
        engine = action.engine
        if not runs_under_deepspeed(case, engine):
            continue
        others = actions(case, Does.TRAIN_MODE, Does.ESCAPE, engine=engine)
        switching = [block for other in others for block in other.blocks]
        for backward in actions(case, Does.BACKWARD, Does.TRAIN_BATCH, engine=engine):
            loop = _common_loop(action, backward)
            if loop is None or loop in switching:
                continue
            yield report(
                action.location,
                f"{action.said} leaves {engine.name} in evaluation mode: the loop goes on "
                "training without dropout and with frozen batch statistics",
                Consequence.DIFFERS,
                because=(in_script("training goes on with", backward.said, backward.location),),
                help=f"call {engine.name}.train() after the evaluation",
            )


def _common_loop(one: Action, other: Action) -> Block | None:
    """The outermost loop around both: what comes after one turn of it is the next."""
    for block in one.blocks:
        if block.around is Around.LOOP and block in other.blocks:
            return block
    return None
