"""Step after step skipped because of overflows; see steps_skipped.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import OptimizerStepped
from dsguard.runtime.rule import guard_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter

_IN_A_ROW = 10


@guard_rule(
    code="DSG927",
    slug="steps-skipped",
    summary="the optimizer skips step after step because gradients overflow",
    severity=Severity.INFO,
    since="0.1.0",
    on=OptimizerStepped,
)
def steps_skipped(moment: OptimizerStepped, report: Reporter) -> Iterator[Finding]:
    """Note a row of skipped steps that is longer than the search for a loss scale."""
    windows = moment.run.windows
    if windows.skipped_in_a_row != _IN_A_ROW:
        return
    yield report(
        moment.run.here(),
        f"{_IN_A_ROW} optimizer steps in a row were skipped "
        f"{moment.run.engine.words.skipped} "
        f"({windows.skipped_steps} of {windows.optimizer_steps} so far): their micro-batches "
        "are lost, and the weights have not moved",
        Consequence.NOTE,
        help=f"{moment.run.engine.words.lower_loss_scale}, or bf16, if the loss scale does not "
        "settle",
    )
