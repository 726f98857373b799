"""A DataLoader batch that is not DeepSpeed's micro batch; see loader_batch_differs.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.equation import number
from dsguard.frontends.base import FrontEndName
from dsguard.model.fact import Known, OriginKind
from dsguard.model.finding import (
    Because,
    Confidence,
    Consequence,
    Finding,
    Severity,
)
from dsguard.model.rule import Reporter, rule
from dsguard.rules.batch._numbers import counted, place, with_accumulation
from dsguard.rules.conditions import Asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.frontends.requests import Request

_KEY = "train_micro_batch_size_per_gpu"


@rule(
    code="DSG207",
    slug="loader-batch-differs",
    summary="the loader's batch size is not DeepSpeed's micro batch",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("front_end", "micro_batch_size"),
    oracle="engine.train_micro_batch_size_per_gpu() is not the loader's batch",
    when=(Asked(_KEY),),
)
def loader_batch_differs(case: Case, report: Reporter) -> Iterator[Finding]:
    """Compare the flag that sizes the loader with the micro batch that DeepSpeed counts."""
    request = case.requests.get(_KEY)
    micro = case.facts.known("micro_batch_size")
    if request is None or case.document is None or case.front_end is None:
        return
    if case.front_end.name is FrontEndName.TRANSFORMERS or case.batch.failure is not None:
        return
    if request.value == micro.value or request.value < 1:
        return
    flag = request.flag
    counts, said = "", f"{flag} gives the loader {request.value}"
    certain = request.confidence is Confidence.HIGH and request.explicit
    ranks = case.facts["data_parallel_size"]
    if not certain and isinstance(ranks, Known):
        on_all_ranks = micro.value * ranks.value
        if request.value in (on_all_ranks, case.facts.value("train_batch_size")):
            return
        # A number that the ranks do not divide can only be one rank's batch.
        certain = request.explicit and request.value % ranks.value != 0
        if not certain:
            counts = f", {number(on_all_ranks)} on all {counted(ranks.value, 'rank')}"
            said = f"{flag} is {request.value}"
    how = f" ({micro.origin.formula})" if micro.origin.kind is OriginKind.DERIVED else ""
    yield report(
        place(case, "micro_batch_size", "train_batch_size"),
        f"DeepSpeed counts {counted(micro.value, 'sample')} per GPU and micro-batch{how}{counts}, "
        f"but {said}",
        Consequence.DIFFERS,
        because=(Because("loader batch", request.value, request.origin),),
        help=_way_out(case, request),
        severity=Severity.ERROR if certain else Severity.WARNING,
        confidence=Confidence.HIGH if certain else Confidence.MEDIUM,
    )


def _way_out(case: Case, request: Request) -> str:
    """One number for both; where a forgotten accumulation explains the difference, say so."""
    flag = request.flag
    steps = case.requests.get("gradient_accumulation_steps")
    if steps is not None and steps.value > 0 and "micro_batch_size" not in case.batch.given:
        micro = with_accumulation(case, steps).micro
        if isinstance(micro, Known) and micro.value == request.value:
            return (
                f"with the {steps.value} of {steps.flag} in the config, DeepSpeed "
                f"counts {number(micro.value)} too"
            )
    return f"make {flag} and {_KEY} one number: DeepSpeed never looks at the script's own loader"
