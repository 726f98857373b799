"""A parameter that the scheduler's constructor does not have.

See unknown_scheduler_parameter.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.blocks import block, trust_in_blocks
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.model.tree import shown_name
from dsguard.rules.conditions import Written
from dsguard.rules.optimizer._blocks import (
    did_you_mean,
    meant,
    respelled,
    severity_of_unknown_name,
)
from dsguard.schema.schedulers import scheduler_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG505",
    slug="unknown-scheduler-parameter",
    summary="a parameter that the scheduler does not take",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="deepspeed.initialize raises TypeError: unexpected keyword argument",
    when=(Written("scheduler"),),
)
def unknown_scheduler_parameter(case: Case, report: Reporter) -> Iterator[Finding]:
    """Every key of ``params`` becomes an argument of the constructor."""
    scheduler = block(case, "scheduler")
    if scheduler is None:
        return
    own = scheduler_class(scheduler.type, Version(case.target.version))
    if own is None:
        return
    for name in scheduler.given():
        if name in own.parameters:
            continue
        guesses = tuple(n for n in meant(name, own.parameters) if n not in scheduler.params)
        at = scheduler.at(name, "key")
        yield report(
            at,
            f"{scheduler.type} takes no parameter {shown_name(name)}; deepspeed.initialize stops "
            "with TypeError",
            Consequence.LATE,
            severity=severity_of_unknown_name(case),
            confidence=trust_in_blocks(case),
            fix=respelled(at, name, guesses, key=True),
            help=did_you_mean(guesses) or f"it takes {', '.join(sorted(own.parameters))}",
        )
