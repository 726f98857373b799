"""Whether an order of batches is still random."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dsguard.data.report import Shuffling

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dsguard.data.batches import Epochs, RankBatches


def shuffling(
    epochs: Epochs, step_means: NDArray[np.float64], step_samples: NDArray[np.int64],
    mean: float, deviation: float, samples: int,
) -> Shuffling:  # fmt: skip
    """Judge the order by the mean lengths of optimizer steps, and by the next epoch.

    Args:
        epochs: the batches of all ranks.
        step_means: mean length of the samples of each optimizer step; shape (steps,).
        step_samples: how many samples those are.
        mean: length of all samples, in tokens.
        deviation: standard deviation of it.
        samples: how many there are in the data set.
    """
    changes = kept = None
    if epochs.second is not None:
        changes = any(
            not np.array_equal(one.samples, other.samples)
            for one, other in zip(epochs.first, epochs.second, strict=True)
        )
        kept = _mates_kept(epochs.first, epochs.second, samples)
    clustering = drift = None
    if len(step_means) >= 4 and deviation > 0:
        # Drawn without replacement: means of large steps of a small data set vary less.
        finite = np.maximum(1e-12, 1 - step_samples / max(samples, 1))
        deviations = (step_means - mean) / (deviation * np.sqrt(finite / step_samples))
        clustering = float(np.sqrt(np.mean(deviations**2)))
        before, after = step_means[:-1], step_means[1:]
        if before.std() > 0 and after.std() > 0:
            drift = float(np.corrcoef(before, after)[0, 1])
    return Shuffling(changes, kept, clustering, drift)


def _mates_kept(first: list[RankBatches], second: list[RankBatches], samples: int) -> float | None:
    before, after = _batch_of(first, samples), _batch_of(second, samples)
    known = (before >= 0) & (after >= 0)
    before, after = before[known], after[known]
    pairs = _pairs(before)
    both = before * (int(after.max(initial=0)) + 1) + after
    return _pairs(both) / pairs if pairs else None


def _batch_of(ranks: list[RankBatches], samples: int) -> NDArray[np.int64]:
    """The number of the batch that holds each sample, -1 where none does."""
    found = np.full(samples, -1, dtype=np.int64)
    before = 0
    for rank in ranks:
        found[rank.samples] = np.repeat(np.arange(len(rank.sizes)) + before, rank.sizes)
        before += len(rank.sizes)
    return found


def _pairs(groups: NDArray[np.int64]) -> int:
    """How many pairs of entries are equal."""
    _, often = np.unique(groups, return_counts=True)
    return int((often * (often - 1) // 2).sum())
