"""adam_w_mode false under AdamW, which stays AdamW; see adam_w_mode_ignored.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.blocks import block, trust_in_blocks
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG515",
    slug="adam-w-mode-ignored",
    summary="adam_w_mode false with type AdamW, which stays AdamW",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="the optimizer that the engine builds decays its weights as AdamW does",
    when=(Written("optimizer.params.adam_w_mode"),),
)
def adam_w_mode_ignored(case: Case, report: Reporter) -> Iterator[Finding]:
    """Only the type Adam listens to the switch."""
    optimizer = block(case, "optimizer")
    if optimizer is None or optimizer.type.lower() != "adamw":
        return
    if optimizer.params.get("adam_w_mode") is not False:
        return
    yield report(
        optimizer.at("adam_w_mode"),
        f"adam_w_mode is false, but the type {optimizer.type} stays AdamW: the weight decay is "
        "decoupled all the same",
        Consequence.IGNORED,
        confidence=trust_in_blocks(case),
        help='write "type": "Adam" for L2 regularisation, or remove adam_w_mode',
    )
