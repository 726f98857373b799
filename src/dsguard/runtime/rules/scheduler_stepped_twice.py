"""The script steps the scheduler, and so does the engine; see scheduler_stepped_twice.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import SchedulerMoved
from dsguard.runtime.rule import guard_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter


@guard_rule(
    code="DSG923",
    slug="scheduler-stepped-twice",
    summary="the learning-rate scheduler is stepped by the script and by the engine",
    severity=Severity.ERROR,
    since="0.1.0",
    on=SchedulerMoved,
)
def scheduler_stepped_twice(moment: SchedulerMoved, report: Reporter) -> Iterator[Finding]:
    """The engine's own scheduler has moved while the engine did not step."""
    times = "once" if moment.times == 1 else f"by {moment.times}"
    yield report(
        moment.run.here(),
        f"the engine's learning-rate scheduler has moved {times} outside engine.step(), which "
        "moves it at every optimizer step: the schedule runs ahead of the steps",
        Consequence.DIFFERS,
        help="leave scheduler.step() out, or do not give the scheduler to deepspeed.initialize",
    )
