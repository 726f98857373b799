"""An entry of the baseline without a finding; see stale_baseline.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Never

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG013",
    slug="stale-baseline",
    summary="an entry of the baseline that accepts nothing any more",
    severity=Severity.WARNING,
    since="0.1.0",
    when=(Never(),),
)
def stale_baseline(case: Case, report: Reporter) -> Iterator[Finding]:
    """Nothing to look for: entries are compared with the findings of all rules."""
    yield from ()
