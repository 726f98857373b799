"""gradient_accumulation_steps that ZenFlow overwrites; see zenflow_overwrites_accumulation.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.rules.zero._settings import number, place, release, stage_of, zero

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_UPDATE = zero("zenflow.update_interval")
_SINCE = Version("0.17.5")
"""The release that brought ZenFlow."""


@rule(
    code="DSG315",
    slug="zenflow-overwrites-accumulation",
    summary="ZenFlow puts its update_interval in place of the accumulation",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("zero_stage", "gradient_accumulation_steps"),
    oracle="engine.gradient_accumulation_steps() is update_interval",
    when=(Written(_UPDATE),),
)
def zenflow_overwrites_accumulation(case: Case, report: Reporter) -> Iterator[Finding]:
    """Nothing in the log says that the number changed."""
    interval, steps = number(case, _UPDATE), case.facts.known("gradient_accumulation_steps")
    if interval is None or interval < 1 or interval == steps.value:
        return
    if stage_of(case) not in (1, 2) or release(case) < _SINCE:
        return
    yield report(
        place(case, _UPDATE),
        f"zenflow.update_interval {interval:g} takes the place of gradient_accumulation_steps "
        f"{steps.value:g}: the batch sizes no longer agree",
        Consequence.DIFFERS,
        because=(Because.of("gradient_accumulation_steps", steps),),
        help=f"set gradient_accumulation_steps to {interval:g} and train_batch_size to match",
        # With a count of 1 nothing that was asked for is lost.
        severity=Severity.INFO if steps.value == 1 else None,
    )
