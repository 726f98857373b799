"""A rule that crashed; see internal_error.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Never

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG000",
    slug="internal-error",
    summary="a rule of dsguard crashed, so the answer is incomplete",
    severity=Severity.ERROR,
    since="0.1.0",
    when=(Never(),),
)
def internal_error(case: Case, report: Reporter) -> Iterator[Finding]:
    """Nothing to look for: the runner reports under this name when a rule raises."""
    yield from ()
