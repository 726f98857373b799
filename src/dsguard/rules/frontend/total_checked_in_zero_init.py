"""A fixed total that zero.Init checks while the model loads; see total_checked_in_zero_init.md."""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.facts.case import Case
from dsguard.facts.equation import number
from dsguard.facts.values import is_number, written
from dsguard.frontends.base import FrontEndName
from dsguard.model.fact import Known
from dsguard.model.finding import Because, Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.frontend._trainer import read_by


@rule(
    code="DSG717",
    slug="total-checked-in-zero-init",
    summary="a fixed train_batch_size is checked while the model loads, perhaps against 1 process",
    severity=Severity.INFO,
    since="0.1.0",
    needs=("zero_stage", "world_size"),
    oracle="DeepSpeedConfig takes 1 process where the process group is not up",
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
    yield report(
        total.origin.location,
        f"with ZeRO stage 3 train_batch_size {number(total.value)} is checked a first time while "
        "from_pretrained loads the model; where no process group is up by then, DeepSpeed counts "
        f"1 process instead of {world.value} and stops",
        Consequence.NOTE,
        because=(Because.of("world_size", world),),
        help='write "auto", or make TrainingArguments before the model',
        confidence=Confidence.MEDIUM,
    )
