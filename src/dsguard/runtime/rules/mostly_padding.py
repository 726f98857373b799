"""Batches that are padding to a large part; see mostly_padding.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import BalanceMeasured
from dsguard.runtime.rule import guard_rule
from dsguard.runtime.wording import optimizer_steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter

_PADDING = 0.3
"""Share of all tokens that is worth a word."""


@guard_rule(
    code="DSG933",
    slug="mostly-padding",
    summary="three tenths or more of the tokens that are computed are padding",
    severity=Severity.WARNING,
    since="0.1.0",
    on=BalanceMeasured,
)
def mostly_padding(moment: BalanceMeasured, report: Reporter) -> Iterator[Finding]:
    """Say how much the attention masks leave out."""
    told = moment.balance
    if told.padding is None or told.padding < _PADDING:
        return
    yield report(
        moment.run.here(),
        f"{told.padding:.0%} of the tokens of the last {optimizer_steps(told.steps)} are padding: "
        "the attention masks leave them out, and they are computed all the same",
        Consequence.NOTE,
        help="put samples of similar length into one micro-batch: "
        "dsguard.data.BalancedBatchSampler, or group_by_length; or pad to the longest sample of "
        "the batch, not to a fixed length",
    )
