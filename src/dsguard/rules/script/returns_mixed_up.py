"""What ``deepspeed.initialize`` returns, taken for something else; see the page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Given
from dsguard.rules.script._loop import loop_of, once
from dsguard.script.loop.description import Engine, Maker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_ORDER = "engine, optimizer, training_dataloader, lr_scheduler"
_NAMES = (
    r"optim|sched|loader",
    r"sched|loader|(?:^|_)(?:model|engine)$",
    r"sched|optim",
    r"loader|optim",
)
"""Words that a name at each place does not have."""

_ALSO = r"wrap|group|prepare"


@rule(
    code="DSG813",
    slug="returns-mixed-up",
    summary="deepspeed.initialize returns engine, optimizer, dataloader, scheduler: always four",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="raises ValueError: too many values to unpack",
    when=(Given("script"),),
)
def returns_mixed_up(case: Case, report: Reporter) -> Iterator[Finding]:
    """Compare the names that the result is unpacked into with what they get."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    for engine in loop_of(case).engines:
        at = engine.targets_location
        if engine.maker is not Maker.DEEPSPEED or engine.targets is None or at is None:
            continue
        if any(name.startswith("*") for name in engine.targets):
            continue
        count = len(engine.targets)
        if count != len(_NAMES):
            stops = "too many values to unpack" if count < len(_NAMES) else "not enough values"
            yield report(
                at,
                f"deepspeed.initialize returns 4 values and {count} names take them: Python stops "
                f"with ValueError ({stops})",
                Consequence.REFUSED,
                help=f"unpack all four: {_ORDER}",
            )
            continue
        wrong = _wrong(engine)
        if wrong is not None:
            index, name = wrong
            yield report(
                at,
                f"{name} gets the {_ORDER.split(', ')[index]}: deepspeed.initialize returns "
                f"{_ORDER}",
                Consequence.LATE,
                help=f"unpack them in this order: {_ORDER}",
                confidence=Confidence.MEDIUM,
            )


def _wrong(engine: Engine) -> tuple[int, str] | None:
    for index, (name, pattern) in enumerate(zip(engine.targets or (), _NAMES, strict=True)):
        if re.search(pattern, name, re.I) and not re.search(_ALSO, name, re.I):
            return index, name
    return None
