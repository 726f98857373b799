"""A parameter that the optimizer's constructor does not have.

See unknown_optimizer_parameter.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.blocks import Block, block, trust_in_blocks
from dsguard.facts.optimizer_class import built
from dsguard.model.fact import Known
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.model.tree import shown_name
from dsguard.rules.conditions import Written
from dsguard.rules.optimizer._blocks import (
    did_you_mean,
    meant,
    respelled,
    severity_of_unknown_name,
)
from dsguard.schema.optimizers import MUON_DROPS_SINCE, MUON_READS, accepted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_OWN_RULE = frozenset({"max_grad_norm"})
"""Refused for every optimizer, and reported as the deprecated key that it is."""


@rule(
    code="DSG502",
    slug="unknown-optimizer-parameter",
    summary="a parameter that the optimizer does not take",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="deepspeed.initialize raises TypeError: unexpected keyword argument",
    when=(Written("optimizer"),),
)
def unknown_optimizer_parameter(case: Case, report: Reporter) -> Iterator[Finding]:
    """Every key of ``params`` becomes an argument, except of Muon, which drops what it lacks."""
    optimizer = block(case, "optimizer")
    if optimizer is None:
        return
    if optimizer.type.lower() == "muon":
        if Version(case.target.version) >= MUON_DROPS_SINCE:
            yield from _dropped(case, report, optimizer)
        return
    what = built(case, optimizer)
    takes = accepted(optimizer.type, what.name) if what is not None else None
    if what is None or takes is None:
        return
    device = case.facts["offload_optimizer"]
    because: tuple[Because, ...] = ()
    if what.offloaded and isinstance(device, Known):
        because = (Because.of("offload_optimizer", device),)
    for name in optimizer.given():
        if name in takes | _OWN_RULE:
            continue
        guesses = tuple(n for n in meant(name, takes) if n not in optimizer.params)
        at = optimizer.at(name, "key")
        yield report(
            at,
            f"{optimizer.type} is built as {what.name}, which takes no parameter "
            f"{shown_name(name)}; deepspeed.initialize stops with TypeError",
            Consequence.LATE,
            severity=severity_of_unknown_name(case),
            confidence=trust_in_blocks(case),
            because=because,
            fix=respelled(at, name, guesses, key=True),
            help=did_you_mean(guesses) or f"it takes {', '.join(sorted(takes))}",
        )


def _dropped(case: Case, report: Reporter, optimizer: Block) -> Iterator[Finding]:
    for name in optimizer.given():
        if name in MUON_READS | _OWN_RULE:
            continue
        guesses = tuple(n for n in meant(name, MUON_READS) if n not in optimizer.params)
        yield report(
            optimizer.at(name, "key"),
            f"Muon takes no parameter {shown_name(name)}, and DeepSpeed drops it without a word",
            Consequence.IGNORED,
            severity=Severity.WARNING,
            confidence=trust_in_blocks(case),
            help=did_you_mean(guesses) or "remove it",
        )
