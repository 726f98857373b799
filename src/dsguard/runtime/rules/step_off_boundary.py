"""The optimizer steps at another boundary than the accumulation; see step_off_boundary.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import OptimizerStepped
from dsguard.runtime.rule import guard_rule
from dsguard.runtime.run import Boundary
from dsguard.runtime.wording import micro_batches
from dsguard.runtime.wording import samples as counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.fact import FactName
    from dsguard.model.rule import Reporter

_STEPS: FactName = "gradient_accumulation_steps"
_IN_A_ROW = 3
_TOLD_BY = ("accumulated-twice", "several-backwards", "step-without-backward")
"""Rules that have named the cause, of which a window of another size is the consequence."""


@guard_rule(
    code="DSG910",
    slug="step-off-boundary",
    summary="the optimizer steps after another number of micro-batches than the accumulation",
    severity=Severity.ERROR,
    since="0.1.0",
    on=OptimizerStepped,
)
def step_off_boundary(moment: OptimizerStepped, report: Reporter) -> Iterator[Finding]:
    """Judge the size of a closed window by who decides where it ends."""
    run, window = moment.run, moment.window
    expected = run.accumulation()
    size = window.micro_batches
    if size == expected or (size == window.expected and not run.asked(_STEPS)):
        return
    if run.resized:
        return  # the engine counts on from before the change, which short-window notes
    if run.boundary is Boundary.ENGINE and window.unsynchronised and window.expected == 1:
        return  # no_sync() and coalesce_grad_reduction() put several into one step
    if size == window.expected and "expectation-differs" in run.said:
        return  # the engine steps where it says, which is another number than was asked for
    severity = Severity.ERROR
    if run.boundary is Boundary.ENGINE:
        if any(rule in run.said for rule in _TOLD_BY):
            return
        if window.unsynchronised and run.engine.accumulation() == 1 and not run.asked(_STEPS):
            return  # no_sync() and coalesce_grad_reduction() let the script accumulate
    else:
        # The script ends its windows itself. A short one at the end of an epoch is usual, and
        # some loops choose the number anew each time.
        whole_before = bool(run.windows.sizes.get(expected, 0))
        if run.boundary is Boundary.CALLER and not run.asked(_STEPS):
            return
        if size < expected and whole_before and window.alike < _IN_A_ROW:
            return
        if size < expected and "gradients-zeroed" in run.said:
            return
        if whole_before or not run.asked(_STEPS):
            severity = Severity.WARNING
    samples = f" ({counted(window.samples)} on this rank)" if window.samples else ""
    yield report(
        run.here(),
        f"the optimizer stepped after {micro_batches(size)}{samples}, not after the "
        f"{expected} of gradient_accumulation_steps",
        Consequence.DIFFERS,
        because=run.asked(_STEPS) or run.engine_says(_STEPS),
        help=run.engine.words.step_rightly,
        severity=severity,
    )
