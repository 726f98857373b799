"""``join_uneven_inputs`` under DeepSpeed; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Acts
from dsguard.rules.script._loop import actions, once, runs_under_deepspeed
from dsguard.script.loop.description import Does, Maker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG820",
    slug="uneven-inputs-not-joined",
    summary="accelerator.join_uneven_inputs does nothing under DeepSpeed",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="warns: Joining uneven inputs is only supported for multi-GPU training",
    when=(Acts(Does.JOIN_UNEVEN),),
)
def uneven_inputs_not_joined(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find ``join_uneven_inputs`` of an accelerator that runs DeepSpeed."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    for action in actions(case, Does.JOIN_UNEVEN, maker=Maker.ACCELERATE):
        if runs_under_deepspeed(case, action.engine):
            yield report(
                action.location,
                f"{action.said} has no effect under DeepSpeed: with unequal numbers of batches the "
                "ranks wait for each other for ever",
                Consequence.HANGS,
                help="give every rank as many batches: drop_last=True, or limit the loop",
            )
