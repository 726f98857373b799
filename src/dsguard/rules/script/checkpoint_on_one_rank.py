"""``save_checkpoint`` that only one rank calls; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Acts
from dsguard.rules.script._loop import (
    actions,
    conditions,
    excludes_any,
    in_script,
    once,
    reasons,
    runs_under_deepspeed,
)
from dsguard.script.loop.description import Does, Meaning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG815",
    slug="checkpoint-on-one-rank",
    summary="one rank saves a checkpoint and waits for the others for ever",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="the rank that saves times out in a collective",
    when=(Acts(Does.SAVE_CHECKPOINT),),
)
def checkpoint_on_one_rank(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find ``save_checkpoint`` under a condition that only one rank meets."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    for action in actions(case, Does.SAVE_CHECKPOINT):
        if not runs_under_deepspeed(case, action.engine):
            continue
        alone = [c for c in conditions(action) if c.meaning is Meaning.FIRST_RANK and c.holds]
        others = actions(case, Does.SAVE_CHECKPOINT, engine=action.engine)
        if not alone or excludes_any(action, others):
            continue
        if case.facts.value("world_size") == 1:
            continue
        yield report(
            action.location,
            f"only one rank gets to {action.said} ({alone[0].text}), where it waits for the others "
            "for ever",
            Consequence.HANGS,
            because=(
                in_script("condition", alone[0].text, alone[0].location),
                *reasons(case, "world_size"),
            ),
            help="call it on every rank; each one writes its own part",
        )
