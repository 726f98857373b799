"""Ranks that wait for the one with the most tokens; see uneven_tokens.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import BalanceMeasured
from dsguard.runtime.rule import guard_rule
from dsguard.runtime.wording import optimizer_steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter

_WAITING = 0.1
"""Share of the time that is worth a word."""


@guard_rule(
    code="DSG932",
    slug="uneven-tokens",
    summary="ranks wait a tenth of the time or more for the one with the most tokens",
    severity=Severity.WARNING,
    since="0.1.0",
    on=BalanceMeasured,
)
def uneven_tokens(moment: BalanceMeasured, report: Reporter) -> Iterator[Finding]:
    """Say how long they wait, and for whom."""
    told = moment.balance
    if told.waiting is None or told.imbalance is None or told.waiting < _WAITING:
        return
    yield report(
        moment.run.here(),
        f"over the last {optimizer_steps(told.steps)} the rank with the most tokens had "
        f"{1 + told.imbalance:.2f} times the mean of all {told.ranks}: the ranks wait "
        f"{told.waiting:.0%} of the time for it (rank {told.busiest} has {told.busiest_load:.2f} "
        "times the mean altogether)",
        Consequence.NOTE,
        help="dsguard.data.BalancedBatchSampler gives every rank as much work; dsguard balance "
        "shows beforehand what that brings",
    )
