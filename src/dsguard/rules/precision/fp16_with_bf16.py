"""Both 16-bit formats at once; see fp16_with_bf16.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.values import has
from dsguard.model.fact import Conflict, OriginKind
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Disputed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG401",
    slug="fp16-with-bf16",
    summary="fp16 and bf16 are both enabled",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="raises AssertionError: bfloat16 and fp16 modes cannot be simultaneously enabled",
    when=(Disputed("precision"),),
)
def fp16_with_bf16(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report the second format, with the first as the reason."""
    precision = case.facts["precision"]
    if not isinstance(precision, Conflict):
        return
    blocks = {"fp16": ("fp16",), "bf16": ("bf16", "bfloat16")}
    for candidate in precision.candidates:
        if not any(has(case.document, block) for block in blocks[candidate.value]):
            # The trainer stops before it puts the second block in.
            return
    first, second = precision.candidates
    if second.origin.kind is not OriginKind.CONFIG:
        first, second = second, first
    if second.origin.location is None:
        return
    filled = first.origin.kind is OriginKind.LAUNCH
    yield report(
        second.origin.location,
        f"{second.value} is enabled together with {first.value}; DeepSpeed trains in one of them "
        "and refuses both",
        Consequence.REFUSED,
        because=(Because(f"{first.value}.enabled", True, first.origin),),
        help=f'say "auto" for {second.value}.enabled too, and {first.origin.argument} decides'
        if filled
        else "keep one of them enabled",
    )
