"""``loss.backward()`` where only the engine's own backward works; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Is
from dsguard.rules.script._loop import (
    actions,
    is_alternative,
    once,
    reasons,
    release,
    stage,
)
from dsguard.script.loop.description import Does, Maker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

SUPPORTED_SINCE = Version("0.18.3")
"""From this release the engine hooks into ``loss.backward()``, except at stage 0."""


@rule(
    code="DSG802",
    slug="backward-without-engine",
    summary="loss.backward() on an engine's loss, which this DeepSpeed does not support",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage",),
    oracle="RuntimeError: Direct calls to tensor.backward() are not supported",
    when=(Is("zero_stage", 0, 1, 2),),
)
def backward_without_engine(case: Case, report: Reporter) -> Iterator[Finding]:
    """Judge each ``loss.backward()`` by the release and the ZeRO stage."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    said = _said(case)
    if said is None:
        return
    consequence, what = said
    for action in actions(case, Does.LOSS_BACKWARD, maker=Maker.DEEPSPEED):
        if is_alternative(case, action):
            continue
        name = action.engine.name
        yield report(
            action.location,
            f"{action.said} goes around the engine: {what}",
            consequence,
            because=reasons(case, "zero_stage"),
            help=f"call {name}.backward(loss)",
        )


def _said(case: Case) -> tuple[Consequence, str] | None:
    level = stage(case)
    if release(case) >= SUPPORTED_SINCE:
        if level != 0:
            return None
        return Consequence.LATE, "without ZeRO, DeepSpeed stops with an error in it"
    if level == 0:
        return (
            Consequence.DIFFERS,
            "gradients are neither averaged over the ranks nor divided by the accumulation "
            "count, and the ranks' parameters drift apart",
        )
    if level in (1, 2):
        return Consequence.LATE, "no gradient reaches ZeRO, and engine.step() stops with KeyError"
    return None
