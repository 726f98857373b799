"""Backward passes that lead to no step; see boundary_never_reached.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import Backward
from dsguard.runtime.rule import guard_rule
from dsguard.runtime.run import Boundary
from dsguard.runtime.wording import micro_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.fact import FactName
    from dsguard.model.rule import Reporter

_STEPS: FactName = "gradient_accumulation_steps"
_CERTAIN = 2
_WITHOUT_STEP = 4
_AT_LEAST = 16


@guard_rule(
    code="DSG914",
    slug="boundary-never-reached",
    summary="micro-batch after micro-batch, and no step of the optimizer",
    severity=Severity.ERROR,
    since="0.1.0",
    on=Backward,
)
def boundary_never_reached(moment: Backward, report: Reporter) -> Iterator[Finding]:
    """More micro-batches in the window than the accumulation, and the end is not in sight."""
    run = moment.run
    windows, expected = run.windows, run.accumulation()
    if windows.open <= expected:
        return
    if run.boundary is Boundary.MANUAL:
        if run.engine.at_boundary() or windows.open not in (expected + 1, _CERTAIN * expected + 1):
            return
        certain = windows.open > expected + 1
        what = "set_gradient_accumulation_boundary(True) was not called for them"
        way_out = (
            "call engine.set_gradient_accumulation_boundary(True) before the last forward and "
            "backward of a window, or never call it and let the engine count"
        )
    elif run.boundary is Boundary.ENGINE:
        # A loop may well call step() after a few windows' worth: another rule judges it then.
        if windows.since_step != max(_WITHOUT_STEP * expected, _AT_LEAST) + 1:
            return
        certain = True
        what = "engine.step() was not called after any of them"
        way_out = "call engine.step() after every micro-batch"
    elif run.asked(_STEPS):
        if windows.open != max(_WITHOUT_STEP * expected, _AT_LEAST) + 1:
            return
        certain = True
        what = f"{run.engine.words.step} was not called after any of them"
        way_out = run.engine.words.step_rightly
    else:
        return
    yield report(
        run.here(),
        f"{micro_batches(windows.open)} without a step of the optimizer, with accumulation "
        f"{expected}: {what}",
        Consequence.DIFFERS,
        because=run.engine_says(_STEPS) or run.asked(_STEPS),
        severity=Severity.ERROR if certain else Severity.WARNING,
        help=way_out,
    )
