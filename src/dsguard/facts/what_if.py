"""What the batch sizes would be if the config gave another number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dsguard.facts.equation import BatchEquation, solve
from dsguard.facts.samples import samples_per_step
from dsguard.model.fact import Fact, FactName, Known

if TYPE_CHECKING:
    from dsguard.facts.case import Case

BATCH_KEYS: dict[str, FactName] = {
    "train_batch_size": "train_batch_size",
    "train_micro_batch_size_per_gpu": "micro_batch_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
}
"""The batch fact that each key of the config gives."""


def batch_with(case: Case, name: FactName, value: Fact) -> BatchEquation:
    """The batch equation as it would be if the config gave this value."""
    batch = case.batch
    given: dict[FactName, Fact] = {
        "train_batch_size": batch.train,
        "micro_batch_size": batch.micro,
        "gradient_accumulation_steps": batch.accumulation,
    }
    given = {**{key: fact for key, fact in given.items() if key in batch.given}, name: value}
    return solve(
        given.get("train_batch_size"),
        given.get("micro_batch_size"),
        given.get("gradient_accumulation_steps"),
        batch.data_parallel,
    )


def samples_with(case: Case, batch: BatchEquation) -> Any:
    """What one optimizer step would then train on, None where that is not known."""
    facts: dict[FactName, Fact] = {
        **case.facts,
        "train_batch_size": batch.train,
        "micro_batch_size": batch.micro,
        "gradient_accumulation_steps": batch.accumulation,
    }
    samples = samples_per_step(case.requests, case.front_end, facts, batch.failure)
    return samples.value if isinstance(samples, Known) else None
