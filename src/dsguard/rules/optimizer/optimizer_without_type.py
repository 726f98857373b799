"""An optimizer block that names no optimizer; see optimizer_without_type.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.rules.optimizer._blocks import without_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG503",
    slug="optimizer-without-type",
    summary="an optimizer block without type, which DeepSpeed does not read",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="deepspeed.initialize accepts it and builds no optimizer",
    when=(Written("optimizer"),),
)
def optimizer_without_type(case: Case, report: Reporter) -> Iterator[Finding]:
    """Without a type, DeepSpeed behaves as if there were no block."""
    at = without_type(case, "optimizer")
    if at is not None:
        yield report(
            at,
            "the optimizer block has no type, so DeepSpeed ignores all of it and builds no "
            "optimizer",
            Consequence.IGNORED,
            help='write "type": "AdamW" beside params, or remove the block',
        )
