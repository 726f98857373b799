"""A trainer that cannot save whole weights at stage 3; see zero3_save_without_gather.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.frontends.base import FrontEndName
from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Is, Written
from dsguard.rules.zero._settings import (
    place,
    reason,
    stage_of,
    stage_reason,
    switch,
    zero,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_NAME = "stage3_gather_16bit_weights_on_model_save"
_SPELLINGS = (
    zero(_NAME),
    zero("gather_16bit_weights_on_model_save"),
    zero("stage3_gather_fp16_weights_on_model_save"),
)
"""The key, its short name and its old one; DeepSpeed takes one of them."""


@rule(
    code="DSG321",
    slug="zero3-save-without-gather",
    summary="weights that stage 3 saves in pieces",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("zero_stage", "front_end"),
    oracle="engine.zero_gather_16bit_weights_on_model_save() is false",
    when=(Is("zero_stage", 3), Written(*_SPELLINGS)),
)
def zero3_save_without_gather(case: Case, report: Reporter) -> Iterator[Finding]:
    """Only a written false; many configs lack the key and never save whole weights."""
    if stage_of(case) != 3 or case.front_end is None:
        return
    spelled = next((key for key in _SPELLINGS if reason(case, key)), None)
    if spelled is None or switch(case, spelled, True) is not False:
        return
    if case.front_end.name is FrontEndName.TRANSFORMERS:
        what = "HF Trainer saves a ZeRO checkpoint in pieces instead of the model's weights"
    elif case.front_end.name is FrontEndName.ACCELERATE:
        what = "Accelerate's get_state_dict and save_model stop with ValueError"
    else:
        return
    yield report(
        place(case, spelled),
        f"with ZeRO stage 3 and {spelled.rpartition('.')[2]} false, {what}",
        Consequence.LATE,
        because=stage_reason(case),
        help=f"set {_NAME} to true, or put the pieces together with zero_to_fp32.py",
        # HF Trainer gathers the few weights of a PEFT adapter all the same.
        confidence=Confidence.MEDIUM,
    )
