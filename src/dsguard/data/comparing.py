"""Ways of batching the same samples, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dsguard.data.auditing import measure
from dsguard.data.batches import Epochs, RankBatches, read_batches
from dsguard.data.comparison import Comparison, Lengths
from dsguard.data.orders import length_grouped, shuffled
from dsguard.data.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dsguard.data.lengths import Integers
    from dsguard.data.sampler import BalancedBatchSampler

_BARS = 40


def compare(
    lengths: Integers,
    sampler: BalancedBatchSampler,
    shape: Shape,
    *,
    modality: Sequence[str] | None = None,
    attention_length: float | None = None,
    seed: int = 0,
    own: list[RankBatches] | None = None,
) -> Comparison:
    """Audit the batches of a sampler beside shuffled and length-grouped ones, and one's own.

    Without a micro-batch size (a token budget alone) the other ways take as many samples at once
    as the sampler does on average.
    """
    ranks, accumulation = shape.world_size, shape.accumulation
    size = shape.micro_batch_size or max(1, round(len(lengths) / (ranks * len(sampler))))
    fixed = Shape(ranks, size, accumulation)
    ways: dict[str, Epochs] = {} if own is None else {"yours": Epochs(own, None)}
    ways["shuffled"] = shuffled(len(lengths), ranks, size, seed)
    ways["length-grouped"] = length_grouped(lengths, ranks, size, accumulation, seed)
    ways["balanced"] = read_batches(sampler, ranks, size)
    return Comparison(
        lengths=_described(lengths),
        world_size=ranks,
        micro_batch_size=size,
        gradient_accumulation_steps=accumulation,
        attention_length=attention_length,
        ways={
            name: measure(epochs, lengths, fixed, modality, attention_length)
            for name, epochs in ways.items()
        },
    )


def _described(lengths: Integers) -> Lengths:
    shortest, longest = max(1, int(lengths.min())), max(1, int(lengths.max()))
    edges = np.geomspace(shortest, longest + 1, _BARS + 1)
    histogram, _ = np.histogram(np.maximum(lengths, 1), edges)
    return Lengths(
        samples=len(lengths),
        tokens=int(lengths.sum()),
        mean=float(lengths.mean()),
        median=float(np.median(lengths)),
        p95=float(np.percentile(lengths, 95)),
        shortest=int(lengths.min()),
        longest=int(lengths.max()),
        histogram=tuple(histogram.tolist()),
    )
