"""random_ltd that lacks one of its keys; see random_ltd_incomplete.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.values import block, lacks, pointer_of
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.rules.zero._settings import reason, switch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_OUTER = ("data_efficiency", "data_efficiency.data_routing")
_BLOCK = "data_efficiency.data_routing.random_ltd"
_SCHEDULE = f"{_BLOCK}.random_ltd_schedule"
_READ = ("total_layer_num", "random_ltd_layer_num", "random_ltd_schedule")
_READ_OF_SCHEDULE = ("min_value", "max_value", "schedule_config", "schedule_type")


@rule(
    code="DSG318",
    slug="random-ltd-incomplete",
    summary="random_ltd without a key it reads",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="deepspeed.initialize raises KeyError",
    when=(Written(f"{_BLOCK}.enabled"),),
)
def random_ltd_incomplete(case: Case, report: Reporter) -> Iterator[Finding]:
    """The switches around the block are not asked."""
    if case.document is None or switch(case, f"{_BLOCK}.enabled", False) is not True:
        return
    missing = [key for key in _READ if lacks(case.document, f"{_BLOCK}.{key}")]
    if block(case.document, _SCHEDULE):
        missing += [
            f"random_ltd_schedule.{key}"
            for key in _READ_OF_SCHEDULE
            if lacks(case.document, f"{_SCHEDULE}.{key}")
        ]
    if not missing:
        return
    outer = [key for key in _OUTER if switch(case, f"{key}.enabled", False) is False]
    yield report(
        case.document.locate(pointer_of(_BLOCK), "key"),
        f"random_ltd is enabled without {', '.join(missing)}"
        + (f"; that {outer[0]} is not enabled does not switch it off" if outer else ""),
        Consequence.LATE,
        because=reason(case, f"{_BLOCK}.enabled"),
        help=f"add {', '.join(missing)}, or set random_ltd.enabled to false",
    )
