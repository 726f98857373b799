"""Measuring what a way of batching costs, without a GPU and without the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dsguard.data.batches import Epochs, RankBatches, read_batches
from dsguard.data.cost import checked_attention_length, cost
from dsguard.data.lengths import Integers, kinds_of, lengths_array
from dsguard.data.report import Audit, Parting, Shares, Spread, StepPicture
from dsguard.data.shape import Shape
from dsguard.data.shuffling import shuffling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_NAMED = 20
"""Ranks that a message names."""

_STRETCHES = 160
"""Values that show the imbalance over an epoch at most."""


def audit(
    batches_or_sampler: Any,
    lengths: Any,
    *,
    world_size: int,
    micro_batch_size: int,
    gradient_accumulation_steps: int = 1,
    modality: Sequence[Any] | None = None,
    attention_length: float | None = None,
) -> Audit:
    """Measure padding, balance and shuffling of a way of batching, and find where ranks part.

    Args:
        batches_or_sampler: a sampler, batch sampler or loader, a list of samples or batches, a
            list of batches for each rank, or a function of the rank that gives these; see
            :func:`dsguard.data.batches.read_batches` for who gets what. The data is not read.
        lengths: tokens of each sample; shape (samples,).
        world_size: data-parallel ranks.
        micro_batch_size: samples of one rank in one micro-batch, where samples come one by one.
        gradient_accumulation_steps: micro-batches of one rank in one optimizer step.
        modality: a label for each sample.
        attention_length: the length in tokens at which attention costs as much as all else, about
            6 × hidden size (12 × with a causal kernel); None counts tokens only.

    Raises:
        TypeError: it is no way of batching.
        ValueError: the numbers make no sense, or a batch holds a sample that has no length.
    """
    shape = Shape(world_size, micro_batch_size, gradient_accumulation_steps)
    epochs = read_batches(batches_or_sampler, world_size, micro_batch_size)
    return measure(epochs, lengths_array(lengths), shape, modality, attention_length)


def measure(
    epochs: Epochs,
    lengths: Integers,
    shape: Shape,
    modality: Sequence[Any] | None = None,
    attention_length: float | None = None,
) -> Audit:
    """What the batches of all ranks cost; arguments as of :func:`audit`.

    Raises:
        ValueError: there is no batch, or one holds a sample that has no length.
    """
    checked_attention_length(attention_length)
    ranks = epochs.first
    for batches in (*ranks, *(epochs.second or ())):
        _check_samples(batches.samples, len(lengths))
    per_rank = tuple(len(batches.sizes) for batches in ranks)
    common = min(per_rank)
    if common == 0:
        empty = [rank for rank, batches in enumerate(per_rank) if not batches]
        names = ", ".join(map(str, empty[:_NAMED]))
        more = f" and {len(empty) - _NAMED} more" if len(empty) > _NAMED else ""
        raise ValueError(f"no batches for rank {names}{more}")
    size, tokens, longest = (
        np.column_stack([column[:common] for column in columns])
        for columns in zip(*(_measured(batches, lengths) for batches in ranks), strict=True)
    )
    load = size * cost(longest, attention_length)
    accumulation = shape.accumulation
    step_load, step_size, step_tokens, step_padded = (
        np.add.reduceat(of_batch, np.arange(0, common, accumulation), axis=0)
        for of_batch in (load, size, tokens, size * longest)
    )
    uses = np.bincount(np.concatenate([r.samples for r in ranks]), minlength=len(lengths))
    of_step = _imbalance(step_load)
    computed = float((size * longest).sum())
    step_samples = step_size.sum(axis=1)
    return Audit(
        samples=len(lengths),
        world_size=shape.world_size,
        micro_batch_size=shape.micro_batch_size or int(size.max()),
        gradient_accumulation_steps=accumulation,
        batches_per_rank=per_rank,
        optimizer_steps=common // accumulation,
        incomplete_window=common % accumulation,
        parting=_parting(per_rank, accumulation),
        tokens_per_rank=tuple(int(lengths[batches.samples].sum()) for batches in ranks),
        padding=1 - float(tokens.sum()) / computed if computed else 0.0,
        step_imbalance=_spread(of_step),
        micro_batch_imbalance=_spread(_imbalance(load)),
        waiting_micro_batch=_waiting(load),
        waiting_step=_waiting(step_load),
        shares=_shares(ranks, lengths, load, common, attention_length),
        epoch_cost=float(load.max(axis=1).sum()),
        uneven_samples=int((size != size[:, :1]).any(axis=1).sum()),
        modalities_apart=_modalities_apart(ranks, modality, len(lengths), common),
        repeated=int(np.maximum(uses - 1, 0).sum()),
        dropped=int((uses == 0).sum()),
        shuffling=shuffling(
            epochs,
            step_tokens.sum(axis=1) / step_samples,
            step_samples,
            float(lengths.mean()),
            float(lengths.std()),
            len(lengths),
        ),
        picture=_picture(of_step, step_tokens, step_padded),
        imbalance=tuple(
            float(part.mean()) for part in np.array_split(of_step, min(len(of_step), _STRETCHES))
        ),
    )


def _check_samples(samples: Integers, known: int) -> None:
    outside = (samples < 0) | (samples >= known)
    if outside.any():
        first = int(samples[np.argmax(outside)])
        raise ValueError(
            f"a batch holds sample {first}, and there are lengths for 0 to {known - 1}"
        )


def _measured(batches: RankBatches, lengths: Integers) -> tuple[Integers, Integers, Integers]:
    """Samples, tokens without padding and longest length of each batch; shape (batches,)."""
    if not len(batches.sizes):
        return batches.sizes, batches.sizes, batches.sizes
    starts = np.cumsum(batches.sizes) - batches.sizes
    of_sample = lengths[batches.samples]
    return (
        batches.sizes,
        np.add.reduceat(of_sample, starts),
        np.maximum.reduceat(of_sample, starts),
    )


def _imbalance(load: NDArray[np.float64]) -> NDArray[np.float64]:
    """Load of the rank with the most / mean - 1; (steps, ranks) -> (steps,)."""
    mean = load.mean(axis=1)
    ratio: NDArray[np.float64] = np.divide(
        load.max(axis=1), mean, out=np.ones(len(load)), where=mean > 0
    )
    return ratio - 1


def _waiting(load: NDArray[np.float64]) -> float:
    """The share of time in which the ranks wait for the slowest, where they meet in each row."""
    slowest = float(load.max(axis=1).sum())
    return 1 - float(load.mean(axis=1).sum()) / slowest if slowest else 0.0


def _spread(values: NDArray[np.float64]) -> Spread:
    return Spread(float(values.mean()), float(np.percentile(values, 95)), float(values.max()))


def _shares(
    ranks: list[RankBatches],
    lengths: Integers,
    load: NDArray[np.float64],
    common: int,
    attention_length: float | None,
) -> Shares:
    total = float(load.max(axis=1).sum()) * len(ranks)
    if not total:
        return Shares(1.0, 0.0, 0.0)
    of_sample = cost(lengths, attention_length)
    useful = sum(float(of_sample[r.samples[: int(r.sizes[:common].sum())]].sum()) for r in ranks)
    busy = float(load.sum())
    return Shares(useful / total, (busy - useful) / total, 1 - busy / total)


def _parting(per_rank: tuple[int, ...], accumulation: int) -> Parting | None:
    first = min(per_rank)
    if first == max(per_rank):
        return None
    ended = tuple(rank for rank, batches in enumerate(per_rank) if batches == first)
    return Parting(first, *divmod(first, accumulation), ended, max(per_rank) - first)


def _modalities_apart(
    ranks: list[RankBatches], modality: Sequence[Any] | None, samples: int, common: int
) -> int | None:
    if modality is None:
        return None
    kinds = kinds_of(modality, samples)
    if len(kinds.names) > 63:
        raise ValueError(f"there are {len(kinds.names)} modalities; 63 can be told apart")
    held = np.column_stack(
        [
            np.bitwise_or.reduceat(
                np.left_shift(1, kinds.of[batches.samples]),
                np.cumsum(batches.sizes) - batches.sizes,
            )[:common]
            for batches in ranks
        ]
    )
    return int((held != held[:, :1]).any(axis=1).sum())


def _picture(imbalance: NDArray[np.float64], tokens: Integers, padded: Integers) -> StepPicture:
    """The optimizer step whose imbalance is nearest to the mean."""
    step = int(np.argmin(np.abs(imbalance - imbalance.mean())))
    padding = padded[step] - tokens[step]
    return StepPicture(step, tuple(tokens[step].tolist()), tuple(padding.tolist()))
