"""What a fix does to the batch, in words for its title."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dsguard.facts.equation import BatchEquation, number
from dsguard.facts.what_if import BATCH_KEYS, batch_with, samples_with
from dsguard.model.fact import Known, Origin, OriginKind

if TYPE_CHECKING:
    from dsguard.facts.case import Case


def effect(case: Case, batch: BatchEquation) -> str:
    """``, so that one optimizer step trains on 32 samples``; empty where that is not known."""
    samples = samples_with(case, batch)
    if samples is None:
        return ""
    noun = "sample" if samples == 1 else "samples"
    return f", so that one optimizer step trains on {number(samples)} {noun}"


def effect_of_key(case: Case, key: str, value: Any) -> str:
    """The effect of a key of the config that has not counted so far; empty for no batch key."""
    if key not in BATCH_KEYS or isinstance(value, bool) or not isinstance(value, int):
        return ""
    return effect(case, batch_with(case, BATCH_KEYS[key], Known(value, Origin(OriginKind.CONFIG))))
