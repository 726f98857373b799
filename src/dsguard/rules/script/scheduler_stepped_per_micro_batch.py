"""A scheduler of the script's own, stepped at every micro-batch; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Acts
from dsguard.rules.script._loop import (
    accumulation,
    actions,
    branches,
    innermost,
    once,
    owns_its_windows,
    reasons,
    runs_under_deepspeed,
)
from dsguard.script.loop.description import Does, Whose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_PER_BATCH = ("len(", "batch", "iter", "micro", "accum", "gas")
"""What a schedule that is measured in micro-batches is written with."""


@rule(
    code="DSG808",
    slug="scheduler-stepped-per-micro-batch",
    summary="an own scheduler moves at every micro-batch, the optimizer once a window",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("gradient_accumulation_steps",),
    oracle="the schedule is n times further than the optimizer's steps",
    when=(Acts(Does.SCHEDULER_STEP),),
)
def scheduler_stepped_per_micro_batch(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find schedulers that the engine does not know, stepped beside every backward."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    steps = accumulation(case)
    for action in actions(case, Does.SCHEDULER_STEP):
        if steps is None or steps < 2:
            continue
        engine, loop = action.engine, innermost(action)
        if action.whose is not Whose.OWN or not runs_under_deepspeed(case, engine):
            continue
        if owns_its_windows(case, engine) or loop is None:
            continue
        together = [
            other
            for other in actions(case, Does.BACKWARD, engine=engine)
            if innermost(other) is loop and not branches(action, other.blocks)
        ]
        texts = [given.text.lower() for given in action.arguments.values()]
        if not together or any(word in text for text in texts for word in _PER_BATCH):
            continue
        yield report(
            action.location,
            f"{action.said} runs at every micro-batch, but the optimizer steps once in {steps}: "
            f"the learning rate runs through its schedule {steps} times as fast",
            Consequence.DIFFERS,
            because=reasons(case, "gradient_accumulation_steps"),
            help="hand the scheduler to the engine (lr_scheduler=, or accelerator.prepare), or "
            "step it where the optimizer steps",
            confidence=Confidence.MEDIUM,
        )
