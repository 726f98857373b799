"""A scheduler that the target release cannot build; see unknown_scheduler.md."""

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
from dsguard.schema.schedulers import DEEPSPEED_SCHEDULERS, scheduler_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG504",
    slug="unknown-scheduler",
    summary="a scheduler type that is neither DeepSpeed's nor in torch.optim.lr_scheduler",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="deepspeed.initialize raises AssertionError: DeepSpeed does not recognize LR scheduler",
    when=(Written("scheduler"),),
)
def unknown_scheduler(case: Case, report: Reporter) -> Iterator[Finding]:
    """The case of the name matters for both kinds."""
    scheduler = block(case, "scheduler")
    target = Version(case.target.version)
    if scheduler is None or scheduler_class(scheduler.type, target) is not None:
        return
    own = DEEPSPEED_SCHEDULERS.get(scheduler.type)
    guesses: tuple[str, ...] = ()
    if own is not None:
        why = f"{scheduler.type} exists since DeepSpeed {own.since}"
        help = "use WarmupDecayLR, or run a newer DeepSpeed"
    else:
        why = (
            f'"{scheduler.type}" is neither a scheduler of DeepSpeed {target} nor a class of '
            "torch.optim.lr_scheduler"
        )
        names = [name for name, its in DEEPSPEED_SCHEDULERS.items() if its.since <= target]
        guesses = meant(scheduler.type, names)
        help = did_you_mean(guesses) or f"DeepSpeed has {', '.join(names)}"
    yield report(
        scheduler.type_at,
        f"{why}; deepspeed.initialize stops with AssertionError",
        Consequence.LATE,
        severity=severity_of_unknown_name(case),
        confidence=trust_in_blocks(case),
        fix=respelled(scheduler.type_at, scheduler.type, guesses),
        help=help,
    )
