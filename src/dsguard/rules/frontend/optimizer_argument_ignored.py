"""An optimizer argument of a loop of its own that the config overrides.

See optimizer_argument_ignored.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.values import is_number, written
from dsguard.frontends.base import FrontEndName
from dsguard.model.finding import Because, Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import ReadBy, Written
from dsguard.rules.frontend._trainer import read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG710",
    slug="optimizer-argument-ignored",
    summary="a learning rate or weight decay that the config's optimizer block overrides",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("front_end",),
    oracle="the config that reaches deepspeed.initialize keeps its own numbers",
    when=(ReadBy(FrontEndName.ACCELERATE), Written("optimizer.type")),
)
def optimizer_argument_ignored(case: Case, report: Reporter) -> Iterator[Finding]:
    """``prepare()`` fills ``"auto"`` from DummyOptim and compares nothing."""
    document = read_by(case, FrontEndName.ACCELERATE)
    if document is None or written(document, "optimizer.type") is None:
        return
    for name in ("lr", "weight_decay"):
        value = written(document, f"optimizer.params.{name}")
        request = case.requests.get(f"optimizer.params.{name}")
        if value is None or request is None or value.origin.location is None:
            continue
        if not is_number(value.value) or value.value == request.value or not request.explicit:
            continue
        yield report(
            value.origin.location,
            f"the optimizer block wins: {name} is {value.value:g}, and the {request.value:g} of "
            f"{request.flag} has no effect",
            Consequence.IGNORED,
            because=(Because(name, request.value, request.origin),),
            help=f'write "{name}": "auto" and give the value to DummyOptim',
            confidence=min(
                request.confidence, Confidence.MEDIUM, key=lambda confidence: confidence.rank
            ),
        )
