"""A fixed loss scale with Lamb; see static_loss_scale_with_lamb.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.values import is_number, written
from dsguard.model.finding import Because, Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG408",
    slug="static-loss-scale-with-lamb",
    summary="Lamb with a fixed fp16 loss scale",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="deepspeed.initialize raises AssertionError: lamb optimizer requires dynamic loss "
    "scaling",
    when=(Written("fp16.loss_scale"), Written("optimizer.type")),
)
def static_loss_scale_with_lamb(case: Case, report: Reporter) -> Iterator[Finding]:
    """DeepSpeed looks at the number alone, even where fp16 is off."""
    scale = written(case.document, "fp16.loss_scale")
    kind = written(case.document, "optimizer.type")
    if scale is None or kind is None or scale.origin.location is None:
        return
    if not isinstance(kind.value, str) or kind.value.lower() != "lamb":
        return
    if not is_number(scale.value) or scale.value <= 0:
        return
    yield report(
        scale.origin.location,
        f"loss_scale is fixed at {scale.value:g}, and Lamb needs a dynamic one; "
        "deepspeed.initialize stops with AssertionError",
        Consequence.LATE,
        because=(Because("optimizer.type", kind.value, kind.origin),),
        confidence=Confidence.MEDIUM,
        help='write "loss_scale": 0',
    )
