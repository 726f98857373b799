"""An optimizer block without a learning rate; see learning_rate_not_in_config.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.values import unread, written
from dsguard.frontends.base import THROUGH_ACCELERATE
from dsguard.model.fact import Known
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import ReadBy, Reads, Written
from dsguard.rules.frontend._trainer import read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEY = "optimizer.params.lr"


@rule(
    code="DSG704",
    slug="learning-rate-not-in-config",
    summary="an optimizer block without lr, so the trainer's learning rate does not count",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="the optimizer's param groups have its own default lr",
    when=(Reads("requests"), ReadBy(*THROUGH_ACCELERATE), Written("optimizer.type")),
)
def learning_rate_not_in_config(case: Case, report: Reporter) -> Iterator[Finding]:
    """The Trainer fills lr only where the key exists; the optimizer is built from the block."""
    document = read_by(case, *THROUGH_ACCELERATE)
    request = case.requests.get(_KEY)
    if document is None or request is None:
        return
    kind = written(document, "optimizer.type")
    if kind is None or kind.origin.location is None or written(document, _KEY) is not None:
        return
    if unread(document, "optimizer.type") is not None:
        return
    default = case.facts["learning_rate"]
    if isinstance(default, Known) and default.value == request.value:
        return
    uses = f"{default.value:g}" if isinstance(default, Known) else "its own default"
    scheduled = written(document, "scheduler.type") is not None
    yield report(
        kind.origin.location,
        f"the optimizer block gives no lr, so {kind.value} starts with {uses} and the "
        f"{request.value:g} of {request.flag} is not used"
        + (" unless the scheduler block sets it" if scheduled else ""),
        Consequence.DIFFERS,
        because=(Because("learning_rate", request.value, request.origin),),
        help='write "params": {"lr": "auto"} in the optimizer block, or remove the block',
        confidence=request.confidence,
        severity=Severity.WARNING if scheduled or not request.explicit else Severity.ERROR,
    )
