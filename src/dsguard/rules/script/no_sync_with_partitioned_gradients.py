"""``engine.no_sync()`` at a stage that partitions gradients; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Acts, Is
from dsguard.rules.script._loop import actions, asks_about_zero, once, reasons, release, stage
from dsguard.script.loop.description import Does, Maker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

NO_SYNC_SINCE = Version("0.16.0")
COALESCE_SINCE = Version("0.19.2")


@rule(
    code="DSG809",
    slug="no-sync-with-partitioned-gradients",
    summary="engine.no_sync() is refused at ZeRO stage 2 and 3",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage",),
    oracle="raises AssertionError: no_sync context manager is incompatible",
    when=(Is("zero_stage", 2, 3), Acts(Does.NO_SYNC)),
)
def no_sync_with_partitioned_gradients(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find ``engine.no_sync()`` where gradients are partitioned."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    level = stage(case)
    if level not in (2, 3):
        return
    for action in actions(case, Does.NO_SYNC, maker=Maker.DEEPSPEED):
        if asks_about_zero(action) or release(case) < NO_SYNC_SINCE:
            continue
        other = (
            "use engine.coalesce_grad_reduction(), which defers the reduction at every stage"
            if release(case) >= COALESCE_SINCE
            else "leave it out and let gradient_accumulation_steps count"
        )
        yield report(
            action.location,
            f"{action.said} stops with an AssertionError at ZeRO stage {level}, which partitions "
            "gradients as they come",
            Consequence.LATE,
            because=reasons(case, "zero_stage"),
            help=other,
        )
