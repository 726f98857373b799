"""Clipping that is asked for and not applied; see clipping_not_applied.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.equation import number
from dsguard.facts.values import written
from dsguard.frontends.base import THROUGH_ACCELERATE, FrontEndName
from dsguard.model.fact import OriginKind
from dsguard.model.finding import Because, Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Asked, ReadBy, Reads
from dsguard.rules.frontend._trainer import read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEY = "gradient_clipping"


@rule(
    code="DSG703",
    slug="clipping-not-applied",
    summary="gradient clipping on the command line that DeepSpeed does not apply",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("front_end", "gradient_clipping"),
    oracle="engine.gradient_clipping() is the config's value or DeepSpeed's default",
    when=(Reads("requests"), ReadBy(FrontEndName.PLAIN, *THROUGH_ACCELERATE), Asked(_KEY)),
)
def clipping_not_applied(case: Case, report: Reporter) -> Iterator[Finding]:
    """Nobody fills an absent gradient_clipping; outside the Trainer nobody compares it either."""
    document = read_by(case, FrontEndName.PLAIN, *THROUGH_ACCELERATE)
    request = case.requests.get(_KEY)
    fact = case.facts.known("gradient_clipping")
    if document is None or request is None or case.front_end is None:
        return
    if request.value == fact.value or fact.origin.kind not in (
        OriginKind.CONFIG,
        OriginKind.DEFAULT,
    ):
        return
    if fact.origin.kind is OriginKind.CONFIG:
        said = f"{_KEY} is {number(fact.value)} in the config"
        at = document.locate(f"/{_KEY}")
    elif written(document, _KEY) is not None:
        # "auto": implicit-clipping says what fills it.
        return
    else:
        effect = f"clips at {number(fact.value)}" if fact.value else "does not clip"
        said = f"{_KEY} is not in the config, so DeepSpeed {case.target.version} {effect}"
        at = document.start
    filled = case.front_end.name is FrontEndName.TRANSFORMERS
    plain = case.front_end.name is FrontEndName.PLAIN
    yield report(
        at,
        f"{said}; the {number(request.value)} of {request.flag} has no effect",
        Consequence.IGNORED,
        because=(Because(request.name, request.value, request.origin),),
        help=f'write "{_KEY}": {number(request.value)} in the config'
        + (', or "auto"' if filled else ""),
        confidence=min(
            request.confidence,
            Confidence.MEDIUM if plain or not request.explicit else Confidence.HIGH,
            key=lambda confidence: confidence.rank,
        ),
    )
