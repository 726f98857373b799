"""A rank without a guard; see rank_not_attached.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import RanksCompared
from dsguard.runtime.rule import guard_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter


@guard_rule(
    code="DSG905",
    slug="rank-not-attached",
    summary="a rank did not attach its guard in time, so it was not compared",
    severity=Severity.WARNING,
    since="0.1.0",
    on=RanksCompared,
)
def rank_not_attached(moment: RanksCompared, report: Reporter) -> Iterator[Finding]:
    """Name the ranks that told nothing."""
    if not moment.missing:
        return
    ranks = ", ".join(str(rank) for rank in moment.missing)
    yield report(
        moment.run.attached_at,
        f"rank {ranks} attached no guard within {moment.seconds:g} seconds and was not compared",
        Consequence.NOTE,
        help=f'call {moment.run.engine.words.attach}, or say ranks="off"',
    )
