"""Weights saved while ZeRO-3 holds them in parts; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Acts, Is
from dsguard.rules.script._loop import (
    actions,
    asks_about_zero,
    inside,
    once,
    reasons,
    runs_under_deepspeed,
    stage,
)
from dsguard.script.loop.description import Context, Does, Maker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG814",
    slug="weights-saved-in-parts",
    summary="state_dict() at ZeRO stage 3 holds empty tensors",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage",),
    oracle="the tensors in the saved file have no elements",
    when=(Is("zero_stage", 3), Acts(Does.SAVE_WEIGHTS)),
)
def weights_saved_in_parts(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find ``torch.save`` and ``save_pretrained`` of weights that are not gathered."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    if stage(case) != 3:
        return
    for action in actions(case, Does.SAVE_WEIGHTS):
        engine = action.engine
        if not runs_under_deepspeed(case, engine) or inside(action, Context.GATHERED):
            continue
        if asks_about_zero(action):
            continue
        instead = (
            "pass state_dict=accelerator.get_state_dict(model)"
            if engine.maker is Maker.ACCELERATE
            else f"call {engine.name}.save_16bit_model(folder) on every rank, or "
            f"{engine.name}.save_checkpoint(folder) and zero_to_fp32.py"
        )
        yield report(
            action.location,
            f"{action.said} saves empty tensors: at ZeRO stage 3 each rank holds its part of a "
            "parameter, and the parameter itself has no elements",
            Consequence.LATE,
            because=reasons(case, "zero_stage"),
            help=instead,
        )
