"""A fixed total that zero.Init checks while the model loads; see total_checked_in_zero_init.md."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING

from dsguard.facts.equation import number
from dsguard.facts.values import is_number, written
from dsguard.frontends.base import FrontEndName
from dsguard.model.fact import Known, Origin, OriginKind
from dsguard.model.finding import Because, Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Is, ReadBy, Written
from dsguard.rules.frontend._trainer import read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.model.source import Location
    from dsguard.script.script import Script

_MAY_START_GROUP = re.compile(r"init_distributed|init_process_group|PartialState|Accelerator\b")


@rule(
    code="DSG717",
    slug="total-checked-in-zero-init",
    summary="a fixed train_batch_size is checked while the model loads, perhaps against 1 process",
    severity=Severity.INFO,
    since="0.1.0",
    needs=("zero_stage", "world_size"),
    oracle="DeepSpeedConfig takes 1 process where the process group is not up",
    when=(ReadBy(FrontEndName.TRANSFORMERS), Is("zero_stage", 3), Written("train_batch_size")),
)
def total_checked_in_zero_init(case: Case, report: Reporter) -> Iterator[Finding]:
    """Stage 3 under the Trainer reads the config once more, inside ``from_pretrained``."""
    document = read_by(case, FrontEndName.TRANSFORMERS)
    total = written(document, "train_batch_size")
    world = case.facts.known("world_size")
    stage = case.facts["zero_stage"]
    if document is None or total is None or total.origin.location is None:
        return
    if not isinstance(stage, Known) or stage.value != 3 or world.value == 1:
        return
    if not is_number(total.value) or case.batch.failure is not None:
        return
    order = _order(case.script)
    if order is _Order.SAFE:
        return
    load_first = order is _Order.LOAD_FIRST
    yield report(
        total.origin.location,
        f"with ZeRO stage 3 train_batch_size {number(total.value)} is checked a first time while "
        "from_pretrained loads the model; where no process group is up by then, DeepSpeed counts "
        f"1 process instead of {world.value} and stops",
        Consequence.NOTE,
        because=(Because.of("world_size", world), *(_reasons(case.script) if load_first else ())),
        help='write "auto", or make TrainingArguments before the model',
        severity=Severity.WARNING if load_first else None,
        confidence=Confidence.MEDIUM,
    )


class _Order(Enum):
    """Whether the model is loaded inside ``zero.Init`` before the process group is up."""

    LOAD_FIRST = "load first"
    SAFE = "safe"
    UNKNOWN = "unknown"


def _order(script: Script | None) -> _Order:
    """What the script shows of it: only ``HfDeepSpeedConfig`` starts ``zero.Init`` by itself."""
    loop = script.loop if script is not None else None
    if script is None or loop is None or not loop.loads or loop.set_up is None:
        return _Order.UNKNOWN
    order, told = loop.set_up
    inside = [load for load in loop.loads if load.order > order]
    if not inside or "HfDeepSpeedConfig" not in _called(told):
        return _Order.SAFE
    if _MAY_START_GROUP.search(script.source.text) or any(
        call.location.source is inside[0].location.source
        and call.location.span < inside[0].location.span
        for call in script.training_arguments
    ):
        return _Order.UNKNOWN
    return _Order.LOAD_FIRST


def _called(told: Location) -> str:
    return told.source.slice(told.span).partition("(")[0]


def _reasons(script: Script | None) -> tuple[Because, ...]:
    """Where the model is loaded."""
    assert script is not None
    assert script.loop.set_up is not None
    first = next(load for load in script.loop.loads if load.order > script.loop.set_up[0])
    origin = Origin(OriginKind.SCRIPT, first.location)
    return (Because("the model", "loaded here", origin),)
