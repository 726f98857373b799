"""``optimizer.step()`` in place of ``engine.step()``; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Acts
from dsguard.rules.script._loop import actions, innermost, is_alternative, once, reasons, stage
from dsguard.script.loop.description import Action, Does, Maker, Whose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG803",
    slug="optimizer-stepped-directly",
    summary="the loop steps the optimizer and never the engine",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="no parameter moves, or KeyError: 0",
    when=(Acts(Does.OPTIMIZER_STEP),),
)
def optimizer_stepped_directly(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find loops with ``engine.backward`` and ``optimizer.step`` but without ``engine.step``."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    for action in actions(case, Does.OPTIMIZER_STEP, maker=Maker.DEEPSPEED):
        engine, loop = action.engine, innermost(action)
        if loop is None or is_alternative(case, action):
            continue
        trains = [a for a in actions(case, Does.BACKWARD, engine=engine) if loop in a.blocks]
        steps = actions(case, Does.STEP, Does.TRAIN_BATCH, Does.ESCAPE, engine=engine)
        if not trains or any(True for _ in steps):
            continue
        yield report(
            action.location,
            f"{action.said} goes around the engine, whose step() is never called: "
            f"{_what(case, action)}",
            Consequence.DIFFERS,
            because=reasons(case, "zero_stage"),
            help=f"call {engine.name}.step() after every backward; it steps the optimizer and "
            "clears the gradients",
        )


def _what(case: Case, action: Action) -> str:
    level = stage(case)
    counted = "it counts no micro-batch, and neither clips nor schedules"
    if level in (1, 2, 3) and action.whose is Whose.CLIENT:
        return f"at ZeRO stage {level} the script's own optimizer has no gradient to step with"
    if level in (1, 2) and action.whose is Whose.RETURNED:
        return f"at ZeRO stage {level} it stops with KeyError where gradients accumulate; {counted}"
    return counted
