"""managed_gradient_accumulation off under a trainer; see unmanaged_accumulation.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.frontends.base import THROUGH_ACCELERATE
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import ReadBy, Written
from dsguard.rules.frontend._trainer import read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEY = "managed_gradient_accumulation"


@rule(
    code="DSG709",
    slug="unmanaged-accumulation",
    summary="managed_gradient_accumulation is false where a trainer sets the boundaries",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="engine.set_gradient_accumulation_boundary raises AssertionError",
    when=(ReadBy(*THROUGH_ACCELERATE), Written(_KEY)),
)
def unmanaged_accumulation(case: Case, report: Reporter) -> Iterator[Finding]:
    """Accelerate tells the engine where windows end; the engine then refuses to be told."""
    document = read_by(case, *THROUGH_ACCELERATE)
    if document is None or case.front_end is None:
        return
    node = document.get(f"/{_KEY}")
    if node is None or node.value is not False:
        return
    yield report(
        document.locate(f"/{_KEY}"),
        f"{case.front_end.title} sets the accumulation boundaries itself, which DeepSpeed refuses "
        f"with {_KEY} false: the first backward fails",
        Consequence.LATE,
        help="remove the key: true is the default",
    )
