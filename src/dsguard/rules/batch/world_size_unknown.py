"""A batch size that cannot be checked without the world size; see world_size_unknown.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.equation import number
from dsguard.facts.values import is_number
from dsguard.model.fact import Unknown
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Given, Unsettled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG208",
    slug="world-size-unknown",
    summary="train_batch_size cannot be checked, because the world size is unknown",
    severity=Severity.INFO,
    since="0.1.0",
    when=(Given("document"), Unsettled("world_size")),
)
def world_size_unknown(case: Case, report: Reporter) -> Iterator[Finding]:
    """Say so where a fixed train_batch_size depends on the number of processes."""
    world = case.facts["world_size"]
    if case.document is None or not isinstance(world, Unknown):
        return
    if case.launch is not None and case.launch.refusal is not None:
        return
    pointer = "/train_batch_size"
    node = case.document.get(pointer)
    if node is None or not is_number(node.value) or case.batch.failure is not None:
        return
    yield report(
        case.document.locate(pointer),
        f"train_batch_size {number(node.value)} counts the samples of all processes, and how many "
        f"there are is unknown: {world.reason}",
        Consequence.NOTE,
        help="give --world-size N"
        + ("" if case.launch is not None else ", or the launch command after --"),
    )
