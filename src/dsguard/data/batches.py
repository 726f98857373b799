"""Samplers, loaders and lists as the batches that each rank takes."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dsguard.data.sampler import BalancedBatchSampler

if TYPE_CHECKING:
    from dsguard.data.epoch import EpochPlan
    from dsguard.data.lengths import Integers


class RankBatches(NamedTuple):
    """The batches of one rank in one epoch.

    ``samples`` of all batches one after the other, shape (samples,); ``sizes`` of the batches, in
    samples, shape (batches,).
    """

    samples: Integers
    sizes: Integers


class Epochs(NamedTuple):
    """The batches of all ranks in an epoch, and in the next one where there is one to look at."""

    first: list[RankBatches]
    second: list[RankBatches] | None


def read_batches(source: Any, world_size: int, micro_batch_size: int) -> Epochs:
    """The batches that each rank takes from a sampler, a loader or lists.

    - A list with one list of batches for each rank is taken as it is, and so is a function of the
      rank.
    - What knows its rank (``DistributedSampler``, :class:`BalancedBatchSampler`, a loader or batch
      sampler over one) is asked for every rank.
    - What does not (``RandomSampler``, ``LengthGroupedSampler``, a list of samples or of batches)
      is dealt as Accelerate and HF Trainer do: batches in turn, the last ones filled up with the
      first samples. A list of batches is not filled up.

    Samplers are asked for two epochs and left as they were.

    Raises:
        TypeError: it is none of these.
        ValueError: it is made for another number of ranks, or a batch is empty.
    """
    if isinstance(source, (Sequence, np.ndarray)):
        return Epochs(_of_lists(source, world_size, micro_batch_size), None)
    if callable(source) and not hasattr(source, "__iter__"):
        ranks = [_of_rank(source(rank), micro_batch_size) for rank in range(world_size)]
        return Epochs(ranks, None)
    if hasattr(source, "dataset") and hasattr(source, "batch_sampler"):
        source = source.batch_sampler or source.sampler  # a DataLoader
    if not hasattr(source, "__iter__"):
        raise TypeError(
            "audit takes a sampler, a loader, a list of batches for each rank, or a function of "
            f"the rank, not a {type(source).__name__}"
        )
    epoch = int(getattr(_holder(source, "epoch"), "epoch", 0) or 0)
    with _undisturbed(source):
        first = _of_sampler(_at_epoch(source, epoch), world_size, micro_batch_size)
        second = _of_sampler(_at_epoch(source, epoch + 1), world_size, micro_batch_size)
    return Epochs(first, second)


def dealt(order: Integers, world_size: int, micro_batch_size: int) -> list[RankBatches]:
    """An order of samples cut into batches and dealt in turn, filled up with the first samples."""
    at_once = world_size * micro_batch_size
    whole = -(-len(order) // at_once) * at_once
    filling = np.resize(order[:at_once], whole - len(order))
    by_rank = np.concatenate([order, filling]).reshape(-1, world_size, micro_batch_size)
    sizes = np.full(len(by_rank), micro_batch_size)
    return [RankBatches(by_rank[:, rank].ravel(), sizes) for rank in range(world_size)]


def of_plan(plan: EpochPlan) -> list[RankBatches]:
    """The batches of all ranks in a plan."""
    before = np.cumsum(plan.counts) - plan.counts
    ranks = []
    for place in plan.place.T:
        starts = plan.starts + place * plan.counts
        at = np.arange(int(plan.counts.sum())) + np.repeat(starts - before, plan.counts)
        ranks.append(RankBatches(plan.samples[at], plan.counts))
    return ranks


def _of_lists(source: Any, world_size: int, micro_batch_size: int) -> list[RankBatches]:
    if len(source) == 0:
        raise ValueError("there are no batches")
    if not _is_list(source[0]):
        return dealt(np.asarray(source, dtype=np.int64), world_size, micro_batch_size)
    first = next((item for part in source for item in part), None)
    if _is_list(first):
        if len(source) != world_size:
            raise ValueError(f"there are batches for {len(source)} ranks, not {world_size}")
        return [_of_rank(part, micro_batch_size) for part in source]
    return [_of_rank(source[rank::world_size], micro_batch_size) for rank in range(world_size)]


def _of_sampler(source: Any, world_size: int, micro_batch_size: int) -> list[RankBatches]:
    if isinstance(source, BalancedBatchSampler):
        _checked_size(source, source.world_size, world_size)
        return of_plan(source.plan())
    if (ranked := _ranked(source, world_size)) is not None:
        return [_of_rank(ranked(rank), micro_batch_size) for rank in range(world_size)]
    whole = _of_rank(source, micro_batch_size)
    size = int(whole.sizes[0]) if len(whole.sizes) else micro_batch_size
    if (whole.sizes[:-1] == size).all():
        return dealt(whole.samples, world_size, size)
    batches = np.split(whole.samples, np.cumsum(whole.sizes)[:-1])
    return [_of_rank(batches[rank::world_size], micro_batch_size) for rank in range(world_size)]


def _of_rank(items: Iterable[Any], micro_batch_size: int) -> RankBatches:
    """Samples, cut into micro-batches, or batches as they come."""
    stream = iter(items)
    first = next(stream, None)
    if first is None:
        return RankBatches(np.empty(0, np.int64), np.empty(0, np.int64))
    stream = chain([first], stream)
    if not _is_list(first):
        samples = np.fromiter(stream, dtype=np.int64)
        sizes = np.full(-(-len(samples) // micro_batch_size), micro_batch_size)
        sizes[-1] = len(samples) - (len(sizes) - 1) * micro_batch_size
        return RankBatches(samples, sizes)
    batches = [np.asarray(batch, dtype=np.int64) for batch in stream]
    sizes = np.asarray([len(batch) for batch in batches], dtype=np.int64)
    if not sizes.all():
        raise ValueError(f"batch {int(np.argmin(sizes))} is empty")
    return RankBatches(np.concatenate(batches), sizes)


def _is_list(item: Any) -> bool:
    return hasattr(item, "__len__") and getattr(item, "ndim", 1) > 0


def _ranked(source: Any, world_size: int) -> Callable[[int], Any] | None:
    """How to ask for the batches of a rank; None where it knows no ranks."""
    holder = _holder(source, "rank")
    if holder is None:
        return None
    for name in ("num_replicas", "world_size", "dp_size"):
        if hasattr(holder, name):
            _checked_size(holder, getattr(holder, name), world_size)

    def of_rank(rank: int) -> Any:
        mine = _copied(source)
        setattr(_holder(mine, "rank"), "rank", rank)  # noqa: B010
        return mine

    return of_rank


def _checked_size(source: Any, has: int, asked: int) -> None:
    if has != asked:
        raise ValueError(f"the {type(source).__name__} is made for {has} ranks, not {asked}")


def _holder(source: Any, name: str) -> Any:
    """The batch sampler or the sampler inside that has an attribute; None where neither has."""
    return next((one for one in _layers(source) if hasattr(one, name)), None)


def _layers(source: Any) -> Iterator[Any]:
    yield source
    inner = getattr(source, "sampler", None)
    if inner is not None and inner is not source:
        yield inner


def _copied(source: Any) -> Any:
    mine = copy.copy(source)
    inner = getattr(source, "sampler", None)
    if inner is not None and inner is not source:
        mine.sampler = copy.copy(inner)
    return mine


def _at_epoch(source: Any, epoch: int) -> Any:
    mine = _copied(source)
    for layer in _layers(mine):
        if hasattr(layer, "set_epoch"):
            layer.set_epoch(epoch)
    return mine


@contextmanager
def _undisturbed(source: Any) -> Iterator[None]:
    """Put every generator of random numbers back that taking an order has moved."""
    torch = sys.modules.get("torch")
    held: list[Any] = [getattr(layer, "generator", None) for layer in _layers(source)]
    generators = [generator for generator in held if hasattr(generator, "get_state")]
    if torch is not None:
        generators.append(torch.default_generator)
    states = [generator.get_state() for generator in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)
