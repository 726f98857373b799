"""An optimizer that the target release cannot build; see unknown_optimizer.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.blocks import block, trust_in_blocks
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.rules.optimizer._blocks import (
    did_you_mean,
    meant,
    respelled,
    severity_of_unknown_name,
)
from dsguard.schema.optimizers import DEEPSPEED_OPTIMIZERS, torch_optimizers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG501",
    slug="unknown-optimizer",
    summary="an optimizer type that is neither DeepSpeed's nor in torch.optim",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="deepspeed.initialize raises AssertionError: ... is not a supported DeepSpeed Optimizer",
    when=(Written("optimizer"),),
)
def unknown_optimizer(case: Case, report: Reporter) -> Iterator[Finding]:
    """DeepSpeed's names count in any case, torch.optim's exactly as written."""
    optimizer = block(case, "optimizer")
    if optimizer is None or optimizer.type in torch_optimizers():
        return
    target = Version(case.target.version)
    own = DEEPSPEED_OPTIMIZERS.get(optimizer.type.lower())
    if own is not None and own.exists(target):
        return
    names = [name.title for name in DEEPSPEED_OPTIMIZERS.values() if name.exists(target)]
    guesses: tuple[str, ...] = ()
    if own is not None and own.removed_in is not None:
        why = f"{own.title} was removed in DeepSpeed {own.removed_in}"
        help = "use Adam, AdamW or Lamb, or run an older DeepSpeed"
    elif own is not None:
        why = f"{own.title} exists since DeepSpeed {own.since}"
        help = "use another optimizer, or run a newer DeepSpeed"
    else:
        why = (
            f'"{optimizer.type}" is neither an optimizer of DeepSpeed {target} nor a class of '
            "torch.optim"
        )
        guesses = meant(optimizer.type, {*names, *torch_optimizers()})
        help = did_you_mean(guesses) or (
            "pass the optimizer to deepspeed.initialize and remove the block"
        )
    yield report(
        optimizer.type_at,
        f"{why}; deepspeed.initialize stops with AssertionError",
        Consequence.LATE,
        severity=severity_of_unknown_name(case),
        confidence=trust_in_blocks(case),
        fix=respelled(optimizer.type_at, optimizer.type, guesses),
        help=help,
    )
