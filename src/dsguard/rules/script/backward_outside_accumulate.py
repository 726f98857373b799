"""``accelerator.backward`` outside ``accumulate()``; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.frontends.base import FrontEndName
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules._accelerate import says_when, steps_the_engine
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
from dsguard.rules.script.accumulated_by_hand import window
from dsguard.script.loop.description import Action, Context, Does, Maker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG823",
    slug="backward-outside-accumulate",
    summary="accelerator.backward outside accumulate() is an optimizer step every time",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("gradient_accumulation_steps",),
    oracle="as many optimizer steps as micro-batches",
    when=(Is("front_end", FrontEndName.ACCELERATE),),
)
def backward_outside_accumulate(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find loops that count windows, by the config or themselves, of which nobody tells."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    steps = accumulation(case)
    if not steps_the_engine(case) or steps is None or says_when(case):
        return
    for action in actions(case, Does.BACKWARD, maker=Maker.ACCELERATE):
        if not runs_under_deepspeed(case, action.engine) or innermost(action) is None:
            continue
        if inside(action, Context.NO_SYNC):
            continue
        own = _own_window(case, action)
        if steps < 2 and own is None:
            continue
        because = reasons(case, "gradient_accumulation_steps")
        ignored = ""
        if own is not None:
            step, several = own
            because = (*because, in_script("own window", several, step.location))
            ignored = f", and {step.said} does nothing under DeepSpeed"
        smaller = f" with 1/{steps} of its gradient" if steps > 1 else ""
        yield report(
            action.location,
            f"{action.said} outside accelerator.accumulate() ends a window: every micro-batch is "
            f"an optimizer step of its own{smaller}{ignored}",
            Consequence.DIFFERS,
            because=because,
            help="put the micro-batch into `with accelerator.accumulate(model):`, step the "
            "optimizer after every backward, and give the count as gradient_accumulation_steps",
        )


def _own_window(case: Case, backward: Action) -> tuple[Action, str] | None:
    """The ``optimizer.step()`` that the script calls once in several backwards, and how many."""
    for step in actions(case, Does.OPTIMIZER_STEP, engine=backward.engine):
        several = window(case, step, backward)
        if several is not None:
            return step, several
    return None
