"""Gradients clipped by hand where ZeRO keeps them; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Acts, Is
from dsguard.rules.script._loop import actions, innermost, is_alternative, once, reasons, stage
from dsguard.script.loop.description import Does, Maker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG810",
    slug="clipping-beside-engine",
    summary="clip_grad_norm_ on parameters whose gradients ZeRO has taken away clips nothing",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("zero_stage",),
    oracle="the parameters move as if nothing was clipped",
    when=(Is("zero_stage", 1, 2, 3), Acts(Does.CLIP)),
)
def clipping_beside_engine(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find ``torch.nn.utils.clip_grad_norm_`` beside ``engine.backward`` under ZeRO."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    level = stage(case)
    if level not in (1, 2, 3):
        return
    for action in actions(case, Does.CLIP, maker=Maker.DEEPSPEED):
        engine, loop = action.engine, innermost(action)
        if loop is None or is_alternative(case, action):
            continue
        if not any(innermost(a) is loop for a in actions(case, Does.BACKWARD, engine=engine)):
            continue
        limit = action.arguments.get("max_norm")
        value = limit.text if limit is not None else "the norm"
        yield report(
            action.location,
            f"{action.said} clips nothing: at ZeRO stage {level} the parameters hold no gradients "
            "after engine.backward",
            Consequence.IGNORED,
            because=reasons(case, "zero_stage", "gradient_clipping"),
            help=f"put {value} into the config as gradient_clipping",
        )
