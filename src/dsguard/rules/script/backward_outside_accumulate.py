"""``accelerator.backward`` outside ``accumulate()``; see the page."""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.facts.case import Case
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.script._accelerate import says_when, steps_the_engine
from dsguard.rules.script._loop import (
    accumulation,
    actions,
    every_nth,
    in_script,
    innermost,
    inside,
    is_accumulation,
    number_of,
    once,
    reasons,
    runs_under_deepspeed,
)
from dsguard.script.loop.description import Action, Context, Does, Given, Maker


@rule(
    code="DSG823",
    slug="backward-outside-accumulate",
    summary="accelerator.backward outside accumulate() is an optimizer step every time",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("gradient_accumulation_steps",),
    oracle="as many optimizer steps as micro-batches",
)
def backward_outside_accumulate(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find loops that count windows, by the config or themselves, of which nobody tells."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    steps = accumulation(case)
    if steps is None or not steps_the_engine(case) or says_when(case):
        return
    for action in actions(case, Does.BACKWARD, maker=Maker.ACCELERATE):
        if not runs_under_deepspeed(case, action.engine) or innermost(action) is None:
            continue
        if inside(action, Context.NO_SYNC):
            continue
        window = _own_window(case, action)
        if steps < 2 and window is None:
            continue
        own: tuple[Because, ...] = ()
        if window is not None:
            step, amount = window
            own = (in_script("own window", amount.text, amount.location),)
            ignored = f", and {step.said} does nothing under DeepSpeed"
        else:
            ignored = ""
        smaller = f" with 1/{steps} of its gradient" if steps > 1 else ""
        yield report(
            action.location,
            f"{action.said} outside accelerator.accumulate() ends a window: every micro-batch is "
            f"an optimizer step of its own{smaller}{ignored}",
            Consequence.DIFFERS,
            because=(*reasons(case, "gradient_accumulation_steps"), *own),
            help="put the micro-batch into `with accelerator.accumulate(model):`, step the "
            "optimizer after every backward, and give the count as gradient_accumulation_steps",
        )


def _own_window(case: Case, backward: Action) -> tuple[Action, Given] | None:
    """The ``optimizer.step()`` that the script calls every n-th time beside a backward."""
    for step in actions(case, Does.OPTIMIZER_STEP, engine=backward.engine):
        nth = every_nth(step, backward.blocks)
        if innermost(step) is not innermost(backward) or nth is None or nth.amount is None:
            continue
        known = number_of(case, nth.amount, step.engine)
        if known.value > 1 if known is not None else is_accumulation(nth.amount):
            return step, nth.amount
    return None
