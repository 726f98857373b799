"""What trainers do without a sampler of one's own, to compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dsguard.data.batches import Epochs, RankBatches, dealt

if TYPE_CHECKING:
    from dsguard.data.lengths import Integers


def shuffled(samples: int, world_size: int, micro_batch_size: int, seed: int = 0) -> Epochs:
    """Samples in random order, as torch's ``DistributedSampler`` gives them to the ranks."""

    def epoch(number: int) -> list[RankBatches]:
        order = np.random.default_rng([seed, number]).permutation(samples)
        order = np.resize(order, -(-samples // world_size) * world_size)
        sizes = np.full(-(-(len(order) // world_size) // micro_batch_size), micro_batch_size)
        sizes[-1] = len(order) // world_size - (len(sizes) - 1) * micro_batch_size
        return [RankBatches(order[rank::world_size], sizes) for rank in range(world_size)]

    return Epochs(epoch(0), epoch(1))


def length_grouped(
    lengths: Integers,
    world_size: int,
    micro_batch_size: int,
    gradient_accumulation_steps: int,
    seed: int = 0,
) -> Epochs:
    """Random pools sorted by length, as HF Trainer's ``group_by_length`` makes them.

    Pools of 50 × micro-batch × accumulation samples, or a quarter of the data; dealt in turn. The
    longest sample of all comes first (``transformers.trainer_pt_utils.LengthGroupedSampler``).
    """
    group = micro_batch_size * gradient_accumulation_steps
    pool = max(1, min(len(lengths) // (group * 4), 50)) * group

    def epoch(number: int) -> list[RankBatches]:
        order = np.random.default_rng([seed, number]).permutation(len(lengths))
        of_pool = np.arange(len(lengths)) // pool
        order = order[np.lexsort((-lengths[order], of_pool))]
        longest = int(np.argmax(lengths[order[::pool]])) * pool
        order[[0, longest]] = order[[longest, 0]]
        return dealt(order, world_size, micro_batch_size)

    return Epochs(epoch(0), epoch(1))
