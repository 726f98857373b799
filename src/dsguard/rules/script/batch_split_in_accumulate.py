"""One batch split into micro-batches under ``accelerator.accumulate``; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.frontends.base import FrontEndName
from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules._accelerate import follows_the_loader, steps_the_engine
from dsguard.rules.conditions import Is
from dsguard.rules.script._loop import (
    accumulation,
    actions,
    in_script,
    innermost,
    inside,
    once,
    reasons,
    runs_under_deepspeed,
)
from dsguard.script.loop.description import Around, Context, Does, Maker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG822",
    slug="batch-split-in-accumulate",
    summary="accumulate() over the parts of one batch steps at every part of a loader's last batch",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("gradient_accumulation_steps",),
    oracle="the last batch of the loader takes n optimizer steps, every other one",
    when=(Is("front_end", FrontEndName.ACCELERATE),),
)
def batch_split_in_accumulate(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find ``accumulate()`` in a loop over parts of a batch that a prepared loader gave."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    steps = accumulation(case)
    if not steps_the_engine(case) or steps is None or steps < 2 or not follows_the_loader(case):
        return
    for action in actions(case, Does.BACKWARD, maker=Maker.ACCELERATE):
        if not runs_under_deepspeed(case, action.engine) or not inside(action, Context.ACCUMULATE):
            continue
        inner = innermost(action)
        loops = [block for block in action.blocks if block.around is Around.LOOP]
        loader = next((block for block in loops if block.is_prepared), None)
        if inner is None or not inner.of_batch or loader is None:
            continue
        yield report(
            action.location,
            f"{action.said} runs over the parts of one batch: when the loader has given its last "
            f"one, accumulate() ends a window at every part, so that batch takes one optimizer "
            f"step a part and not one in {steps}",
            Consequence.DIFFERS,
            because=(
                in_script("loader", "given its last batch before the parts", loader.location),
                *reasons(case, "gradient_accumulation_steps"),
            ),
            help="let the loader yield the micro-batches, or pass "
            "gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=..., "
            "sync_with_dataloader=False)",
            confidence=Confidence.MEDIUM,
        )
