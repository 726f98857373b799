"""ZenFlow intervals that contradict each other; see zenflow_intervals.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.values import block, written
from dsguard.frontends.base import AUTO
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.rules.zero._settings import place, reason, release, stage_of, zero

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_ZENFLOW = zero("zenflow")
_STRATEGY, _SELECT, _UPDATE = (
    f"{_ZENFLOW}.{name}" for name in ("select_strategy", "select_interval", "update_interval")
)
_SINCE = Version("0.17.5")
"""The release that brought ZenFlow."""


@rule(
    code="DSG314",
    slug="zenflow-intervals",
    summary="ZenFlow intervals that contradict each other",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage",),
    oracle="deepspeed.initialize raises Warning or ValueError over select_interval",
    when=(Written(_ZENFLOW),),
)
def zenflow_intervals(case: Case, report: Reporter) -> Iterator[Finding]:
    """Absent keys are `"auto"`; the epoch strategy counts in steps only once data is loaded."""
    if not block(case.document, _ZENFLOW) or stage_of(case) == 0 or release(case) < _SINCE:
        return
    strategy, select, update = (
        given.value if (given := written(case.document, key)) is not None else AUTO
        for key in (_STRATEGY, _SELECT, _UPDATE)
    )
    if strategy == AUTO and isinstance(select, int):
        yield report(
            place(case, _SELECT),
            f'select_interval is {select}, but select_strategy "auto" chooses the interval itself '
            "and stops over a number",
            Consequence.LATE,
            because=reason(case, _STRATEGY),
            help='remove select_interval, or set select_strategy to "step" or "epoch"',
        )
    elif strategy in ("step", "epoch") and select == AUTO:
        yield report(
            place(case, _STRATEGY),
            f'select_strategy "{strategy}" needs a number as select_interval',
            Consequence.LATE,
            because=reason(case, _SELECT),
            help="write select_interval, not below update_interval",
        )
    elif (
        strategy == "step"
        and isinstance(select, int)
        and isinstance(update, int)
        and 0 < select < update
    ):
        yield report(
            place(case, _SELECT),
            f"select_interval {select} is below update_interval {update}",
            Consequence.LATE,
            because=reason(case, _UPDATE),
            help=f"write a select_interval of {update} or more",
        )
