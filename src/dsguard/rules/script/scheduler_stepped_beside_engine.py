"""A scheduler that the engine steps and the script steps as well; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.fact import Known
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Acts
from dsguard.rules.script._loop import actions, in_script, innermost, is_alternative, once, reasons
from dsguard.script.loop.description import Does, Engine, Maker, Whose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG807",
    slug="scheduler-stepped-beside-engine",
    summary="the loop steps a scheduler that engine.step() steps already",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="the learning rate is further along its schedule than the steps that were taken",
    when=(Acts(Does.SCHEDULER_STEP),),
)
def scheduler_stepped_beside_engine(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find steps of the engine's own scheduler in the loop of ``engine.step()``."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    for action in actions(case, Does.SCHEDULER_STEP, maker=Maker.DEEPSPEED):
        engine, loop = action.engine, innermost(action)
        if action.whose is Whose.OWN or not _has_scheduler(case, engine):
            continue
        if loop is None or is_alternative(case, action):
            continue
        steps = [a for a in actions(case, Does.STEP, engine=engine) if loop in a.blocks]
        if not steps:
            continue
        passed = engine.passed.get("lr_scheduler") if engine.has_scheduler else None
        because = (
            (in_script("lr_scheduler", "passed to the engine", passed),)
            if passed is not None
            else reasons(case, "scheduler")
        )
        yield report(
            action.location,
            f"{action.said} steps a scheduler that {steps[0].said} steps already at every "
            "optimizer step: the learning rate runs ahead of its schedule",
            Consequence.DIFFERS,
            because=because,
            help="leave it to the engine",
        )


def _has_scheduler(case: Case, engine: Engine) -> bool:
    """Whether the engine has a scheduler for certain."""
    return engine.has_scheduler or isinstance(case.facts["scheduler"], Known)
