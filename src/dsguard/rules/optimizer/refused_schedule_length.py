"""A number of steps that the scheduler refuses; see refused_schedule_length.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from packaging.version import Version

from dsguard.facts.blocks import block, trust_in_blocks
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.schema.schedulers import DEEPSPEED_SCHEDULERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dsguard.facts.case import Case


class _Length(NamedTuple):
    """What a parameter must be, from which release on."""

    since: Version
    expected: str
    fits: Callable[[Any], bool]


def _whole_and_positive(value: Any) -> bool:
    return isinstance(value, int) and value > 0


_LENGTHS = {
    "warmup_num_steps": _Length(Version("0.19.3"), "a whole number above 0", _whole_and_positive),
    "lr_range_test_step_size": _Length(
        Version("0.19.4"), "a whole number above 0", _whole_and_positive
    ),
    "cycle_first_step_size": _Length(Version("0.19.4"), "above 0", lambda value: value > 0),
    "cycle_second_step_size": _Length(Version("0.19.4"), "0 or more", lambda value: value >= 0),
}


@rule(
    code="DSG509",
    slug="refused-schedule-length",
    summary="a number of scheduler steps that is not positive or not whole",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="deepspeed.initialize raises ValueError: ... must be a positive integer",
    when=(Written("scheduler"),),
)
def refused_schedule_length(case: Case, report: Reporter) -> Iterator[Finding]:
    """Numbers only; text is reported as a mistyped value."""
    scheduler = block(case, "scheduler")
    if scheduler is None:
        return
    own = DEEPSPEED_SCHEDULERS.get(scheduler.type)
    if own is None or own.since > Version(case.target.version):
        return
    for name in scheduler.params:
        length = _LENGTHS.get(name)
        value = scheduler.number(name)
        if length is None or value is None or name not in own.parameters:
            continue
        if Version(case.target.version) < length.since or length.fits(value):
            continue
        yield report(
            scheduler.at(name),
            f"{name} is {value!r}, and since DeepSpeed {length.since} it must be "
            f"{length.expected}; deepspeed.initialize stops with ValueError",
            Consequence.LATE,
            confidence=trust_in_blocks(case),
            help=f"write {int(value)}" if length.fits(int(value)) else f"write {length.expected}",
        )
