"""A boundary that the last backward pass was not told of; see boundary_set_late.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import StepCalled
from dsguard.runtime.rule import guard_rule
from dsguard.runtime.run import Boundary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter


@guard_rule(
    code="DSG929",
    slug="boundary-set-late",
    summary="the boundary is declared after the backward pass that should have known of it",
    severity=Severity.ERROR,
    since="0.1.0",
    on=StepCalled,
)
def boundary_set_late(moment: StepCalled, report: Reporter) -> Iterator[Finding]:
    """A step at a boundary that was none when the last backward pass ran."""
    run = moment.run
    if run.reduced or run.boundary is not Boundary.MANUAL or not run.engine.at_boundary():
        return
    if not run.windows.open:
        return
    harm = run.engine.needs_boundary_in_backward()
    if not harm:
        return
    yield report(
        run.here(),
        "the boundary was declared after the last backward pass, which averages gradients only "
        f"at one: {harm}",
        Consequence.DIFFERS,
        help="call engine.set_gradient_accumulation_boundary(True) before the last forward and "
        "backward of a window",
    )
