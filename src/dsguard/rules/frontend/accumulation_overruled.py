"""An accumulation count that an older Accelerate writes over; see accumulation_overruled.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.equation import number
from dsguard.facts.values import is_number
from dsguard.frontends.base import FrontEndName
from dsguard.model.fact import OriginKind
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import ReadBy
from dsguard.rules.frontend._trainer import read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG722",
    slug="accumulation-overruled",
    summary="an Accelerate before 0.23 writes its own accumulation count over the config's",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("front_end", "gradient_accumulation_steps"),
    when=(ReadBy(FrontEndName.ACCELERATE),),
)
def accumulation_overruled(case: Case, report: Reporter) -> Iterator[Finding]:
    """The config's number lost, and it is another one than counts."""
    fact = case.facts.known("gradient_accumulation_steps")
    if read_by(case, FrontEndName.ACCELERATE) is None or fact.origin.kind is OriginKind.CONFIG:
        return
    for lost in fact.ignored:
        at = lost.origin.location
        if lost.origin.kind is not OriginKind.CONFIG or at is None or not is_number(lost.value):
            continue
        yield report(
            at,
            f"gradient_accumulation_steps is {number(fact.value)}: before 0.23, Accelerate writes "
            f"the count of Accelerator() over the {number(lost.value)} of the config",
            Consequence.DIFFERS,
            because=(Because.of("gradient_accumulation_steps", fact),),
            help=f"make Accelerator(gradient_accumulation_steps={number(lost.value)}), or take "
            "Accelerate 0.23 or newer",
        )
