"""A shape of warm-up that DeepSpeed does not have; see unknown_warmup_type.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.blocks import block, trust_in_blocks
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.schema.schedulers import DEEPSPEED_SCHEDULERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_SHAPES = ("log", "linear")


@rule(
    code="DSG512",
    slug="unknown-warmup-type",
    summary="a warmup_type other than log or linear, for which log is used",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="the scheduler's warmup_type is log",
    when=(Written("scheduler.params.warmup_type"),),
)
def unknown_warmup_type(case: Case, report: Reporter) -> Iterator[Finding]:
    """DeepSpeed warns in the log of every rank and goes on with log."""
    scheduler = block(case, "scheduler")
    if scheduler is None:
        return
    own = DEEPSPEED_SCHEDULERS.get(scheduler.type)
    shape = scheduler.params.get("warmup_type")
    if own is None or "warmup_type" not in own.parameters or not isinstance(shape, str):
        return
    if shape in (*_SHAPES, "auto"):
        return
    yield report(
        scheduler.at("warmup_type"),
        f'warmup_type "{shape}" is not known to DeepSpeed, which warms up by "log" instead',
        Consequence.DIFFERS,
        confidence=trust_in_blocks(case),
        help='write "linear" or "log"',
    )
