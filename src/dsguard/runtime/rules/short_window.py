"""A window that the script ends early; see short_window.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import OptimizerStepped
from dsguard.runtime.rule import guard_rule
from dsguard.runtime.run import Boundary
from dsguard.runtime.wording import micro_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter


@guard_rule(
    code="DSG911",
    slug="short-window",
    summary="a step of the optimizer on fewer micro-batches, as at the end of an epoch",
    severity=Severity.INFO,
    since="0.1.0",
    on=OptimizerStepped,
)
def short_window(moment: OptimizerStepped, report: Reporter) -> Iterator[Finding]:
    """Note a window shorter than the accumulation, where the script decides."""
    run, window = moment.run, moment.window
    expected = run.accumulation()
    if window.micro_batches >= expected:
        return
    if run.resized:
        yield report(
            run.here(),
            f"one step was taken on {micro_batches(window.micro_batches)} instead of {expected}: "
            "after a change of the batch the engine counts on from where it was",
            Consequence.NOTE,
            help="change the accumulation after a number of micro-batches that the new one "
            "divides, or take it as it is",
        )
        return
    if run.boundary is Boundary.ENGINE:
        return
    if not run.windows.sizes.get(expected, 0):
        return  # step-off-boundary judges a run that has no whole window
    yield report(
        run.here(),
        f"one step was taken on {micro_batches(window.micro_batches)} instead of "
        f"{expected}, where the script ended the window itself",
        Consequence.NOTE,
        help="usual at the end of an epoch; a loader whose length is a multiple of the "
        "accumulation has no such step",
    )
