"""The batch is changed in the middle of a window; see resized_in_window.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import Resized
from dsguard.runtime.rule import guard_rule
from dsguard.runtime.wording import micro_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter


@guard_rule(
    code="DSG924",
    slug="resized-in-window",
    summary="the batch size is changed while micro-batches wait for the optimizer",
    severity=Severity.WARNING,
    since="0.1.0",
    on=Resized,
)
def resized_in_window(moment: Resized, report: Reporter) -> Iterator[Finding]:
    """Micro-batches before and after the change have other weights in one step."""
    run = moment.run
    yield report(
        run.here(),
        f"{moment.what} was called with {micro_batches(run.windows.open)} pending: accumulation "
        f"goes from {moment.before} to {moment.after} inside one window",
        Consequence.DIFFERS,
        help="change the batch after a step: when engine.was_step_applied() is true",
    )
