"""What a comparison of ways of batching has measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dsguard.data.report import Audit


@dataclass(frozen=True)
class Lengths:
    """Lengths of the samples, in tokens.

    ``histogram``: samples in classes from the shortest to the longest whose widths grow by the
    same factor.
    """

    samples: int
    tokens: int
    mean: float
    median: float
    p95: float
    shortest: int
    longest: int
    histogram: tuple[int, ...]


@dataclass(frozen=True)
class Comparison:
    """Audits of the same samples for the same ranks, by the name of the way of batching."""

    lengths: Lengths
    world_size: int
    micro_batch_size: int
    gradient_accumulation_steps: int
    attention_length: float | None
    ways: Mapping[str, Audit]

    def relative_time(self, way: str) -> float:
        """How long an epoch takes, as a share of a shuffled one, under the model of the audit."""
        shuffled = self.ways["shuffled"].epoch_cost
        return self.ways[way].epoch_cost / shuffled if shuffled else 1.0
