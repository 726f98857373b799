"""A scheduler block that names no scheduler; see scheduler_without_type.md."""

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
    code="DSG507",
    slug="scheduler-without-type",
    summary="a scheduler block without type, which DeepSpeed does not read",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="deepspeed.initialize accepts it and returns no scheduler",
    when=(Written("scheduler"),),
)
def scheduler_without_type(case: Case, report: Reporter) -> Iterator[Finding]:
    """Without a type, DeepSpeed behaves as if there were no block."""
    at = without_type(case, "scheduler")
    if at is not None:
        yield report(
            at,
            "the scheduler block has no type, so DeepSpeed ignores all of it and builds no "
            "scheduler",
            Consequence.IGNORED,
            help='write "type": "WarmupLR" beside params, or remove the block',
        )
