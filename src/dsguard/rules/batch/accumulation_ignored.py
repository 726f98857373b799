"""Accumulation asked for where nobody listens; see accumulation_ignored.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.equation import number
from dsguard.facts.values import written
from dsguard.frontends.base import FrontEndName
from dsguard.model.fact import OriginKind
from dsguard.model.finding import (
    Because,
    Confidence,
    Consequence,
    Edit,
    Finding,
    Fix,
    Safety,
    Severity,
)
from dsguard.model.rule import Reporter, rule
from dsguard.rules._accelerate import counts_by_hand
from dsguard.rules._effect import effect
from dsguard.rules.batch._numbers import counted, with_accumulation
from dsguard.rules.conditions import Asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.frontends.requests import Request

_KEY = "gradient_accumulation_steps"

_ACCUMULATE = (
    "put the micro-batch into `with accelerator.accumulate(model):` and give the count to "
    "Accelerator(gradient_accumulation_steps=...); a count in the config alone only makes the "
    "gradients smaller"
)
"""The way out for a loop of Accelerate that counts by itself."""


@rule(
    code="DSG203",
    slug="accumulation-ignored",
    summary="gradient accumulation on the command line that does not count",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("front_end", "gradient_accumulation_steps"),
    oracle="engine.gradient_accumulation_steps() is the config's value",
    when=(Asked(_KEY),),
)
def accumulation_ignored(case: Case, report: Reporter) -> Iterator[Finding]:
    """Compare what the command line asks for with what the engine will count."""
    request = case.requests.get(_KEY)
    fact = case.facts.known("gradient_accumulation_steps")
    if request is None or case.document is None or case.front_end is None:
        return
    if case.front_end.name not in (FrontEndName.PLAIN, FrontEndName.ACCELERATE):
        return
    if request.value == fact.value or request.value < 1:
        return
    if not request.explicit and request.value == 1:
        # A default of 1 asks for nothing.
        return
    name = case.document.source.name
    given = fact.origin.kind is OriginKind.CONFIG
    if given:
        winner = f"{name} wins"
    elif fact.origin.kind is OriginKind.DERIVED:
        winner = f"DeepSpeed derives it ({fact.origin.formula})"
    elif written(case.document, _KEY) is not None:
        winner = f'{name} says "auto"'
    else:
        winner = f"{name} does not give it"
    at = (
        case.document.locate(f"/{_KEY}")
        if given
        else (request.origin.location or case.document.locate(""))
    )
    if given and at.source is not case.document.source and not case.document.in_code:
        plugin = case.requests.filled_by_plugin(_KEY)
        if plugin is not None:
            # The plugin that the script makes overrules the options of accelerate launch.
            return
    fix = None
    then = with_accumulation(case, request)
    by_hand = counts_by_hand(case)
    if given and then.failure is None and not by_hand:
        fix = Fix(
            f"set {_KEY} to {request.value} in {name}{effect(case, then)}",
            Safety.UNSAFE,
            (Edit(at.span.start, at.span.end, str(request.value)),),
        )
    samples = case.facts.value("samples_per_step")
    yield report(
        at,
        f"{_KEY} is {number(fact.value)}: {winner}, the {request.value} that "
        f"{request.flag} asks for is ignored"
        + (f"; one optimizer step trains on {counted(samples, 'sample')}" if samples else ""),
        Consequence.DIFFERS,
        because=(Because(_KEY, request.value, request.origin),),
        fix=fix,
        help="" if fix else _ACCUMULATE if by_hand else _way_out(case, request, name),
        severity=Severity.ERROR if request.explicit else Severity.WARNING,
        confidence=request.confidence if request.explicit else Confidence.MEDIUM,
    )


def _way_out(case: Case, request: Request, name: str) -> str:
    """What to write so that the asked-for number counts and the batch equation still holds."""
    give = f'give "{_KEY}": {request.value} in {name}'
    if with_accumulation(case, request).failure is None:
        return give
    micro, ranks = (case.facts.value(name) for name in ("micro_batch_size", "data_parallel_size"))
    if micro is None or ranks is None:
        return give
    if "micro_batch_size" in case.batch.given:
        total = number(micro * request.value * ranks)
        return f"{give}, and leave train_batch_size out or set it to {total}"
    return f"{give}, and a train_batch_size that is a multiple of {number(request.value * ranks)}"
