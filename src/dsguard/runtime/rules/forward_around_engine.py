"""A forward of the module instead of the engine; see forward_around_engine.md."""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter
from dsguard.runtime.moments import Backward
from dsguard.runtime.rule import guard_rule


@guard_rule(
    code="DSG920",
    slug="forward-around-engine",
    summary="engine.module(...) is trained instead of engine(...)",
    severity=Severity.ERROR,
    since="0.1.0",
    on=Backward,
)
def forward_around_engine(moment: Backward, report: Reporter) -> Iterator[Finding]:
    """A backward pass through the engine in a window that has seen no forward of it."""
    run = moment.run
    if not moment.through_engine or run.windows.forwards or run.accumulation() < 2:
        return
    harm = run.engine.needs_engine_forward()
    if not harm:
        return
    yield report(
        run.here(),
        f"engine.backward(loss) was given a loss that engine(...) has not made: {harm}",
        Consequence.DIFFERS,
        help="call engine(...) instead of engine.module(...) or the model itself",
    )
