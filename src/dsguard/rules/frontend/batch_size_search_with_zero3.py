"""The Trainer's search for a batch size under ZeRO-3; see batch_size_search_with_zero3.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.frontends.base import FrontEndName
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Is, ReadBy, Reads
from dsguard.rules.frontend._trainer import read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG718",
    slug="batch-size-search-with-zero3",
    summary="--auto_find_batch_size with ZeRO stage 3",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage",),
    oracle="Trainer raises ValueError: auto_find_batch_size isn't supported yet",
    when=(Reads("requests"), ReadBy(FrontEndName.TRANSFORMERS), Is("zero_stage", 3)),
)
def batch_size_search_with_zero3(case: Case, report: Reporter) -> Iterator[Finding]:
    """The Trainer refuses to search once the parameters are partitioned."""
    document = read_by(case, FrontEndName.TRANSFORMERS)
    request = case.requests.switch("auto_find_batch_size")
    stage = case.facts.known("zero_stage")
    if document is None or request is None or stage.value != 3:
        return
    at = document.locate("/zero_optimization/stage")
    yield report(
        at,
        f"{request.flag} searches for a batch size that fits, and the Trainer refuses that under "
        "ZeRO stage 3",
        Consequence.REFUSED,
        because=(Because(request.name, True, request.origin),),
        help=f"leave {request.flag} out and give --per_device_train_batch_size, or use stage 2",
        confidence=request.confidence,
    )
