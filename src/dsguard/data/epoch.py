"""The batches of one epoch for all ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsguard.data.cost import cost
from dsguard.data.dealing import deal
from dsguard.data.lengths import Integers
from dsguard.data.shape import Shape


@dataclass(frozen=True)
class Recipe:
    """How an epoch is made.

    ``tolerance``: lengths are taken for up to this much longer than they are, at random;
    infinity mixes all lengths. ``attention_length`` as in :func:`dsguard.data.cost.cost`.
    """

    shape: Shape
    tolerance: float
    attention_length: float | None
    seed: int
    shuffle: bool
    longest_first: bool


@dataclass(frozen=True)
class EpochPlan:
    """Samples by micro-step, and which rank takes which of its micro-batches.

    Micro-step t holds ``counts[t]`` samples a rank, those of all ranks from ``starts[t]`` in
    ``samples``; rank r takes the micro-batch at ``place[t, r]`` among them.

    Shapes: ``samples`` (samples of the epoch,), ``starts`` and ``counts`` (micro-steps,),
    ``place`` (micro-steps, ranks).
    """

    samples: Integers
    starts: Integers
    counts: Integers
    place: NDArray[np.intp]

    def batch(self, micro_step: int, rank: int) -> list[int]:
        """The samples of one rank in one micro-step."""
        count = int(self.counts[micro_step])
        start = int(self.starts[micro_step]) + int(self.place[micro_step, rank]) * count
        batch: list[int] = self.samples[start : start + count].tolist()
        return batch


def plan_epoch(
    lengths: Integers,
    members: list[NDArray[np.intp]],
    counts: list[Integers],
    recipe: Recipe,
    epoch: int,
) -> EpochPlan:
    """Make the batches of an epoch; the same on every rank and machine.

    Samples are sorted by a length that is stretched at random by up to 1 + tolerance, so that
    neighbours change from epoch to epoch, and cut into micro-steps and these into micro-batches.
    Sorting makes the sum of the longest lengths as small as it can be: what is computed with
    padding, and the time of an epoch, are at most 1 + tolerance times the least that any other way
    to fill these counts comes to.

    Args:
        lengths: of all samples, in tokens; shape (samples,).
        members: the samples of each kind.
        counts: of :func:`dsguard.data.counts.micro_step_counts`.
        recipe: how.
        epoch: which.
    """
    generator = np.random.default_rng([recipe.seed, epoch]) if recipe.shuffle else None
    ranks = recipe.shape.world_size
    samples = np.concatenate(
        [
            _sorted(lengths, of_kind, ranks * int(made.sum()), recipe.tolerance, generator)
            for of_kind, made in zip(members, counts, strict=True)
        ]
    )
    count = np.concatenate(counts)
    starts = np.cumsum(ranks * count) - ranks * count
    sizes = np.repeat(count, ranks)
    longest = np.maximum.reduceat(lengths[samples], np.cumsum(sizes) - sizes)
    loads = (sizes * cost(longest, recipe.attention_length)).reshape(-1, ranks)
    order = _order(loads.max(axis=1), recipe, generator)
    starts, count, loads = starts[order], count[order], loads[order]
    heaviest_first = np.argsort(-loads, axis=1, kind="stable")
    loads = np.take_along_axis(loads, heaviest_first, axis=1)
    dealt = deal(loads.reshape(-1, recipe.shape.accumulation, ranks), generator)
    place = np.take_along_axis(heaviest_first, dealt.reshape(-1, ranks), axis=1)
    return EpochPlan(samples, starts, count, place)


def _sorted(
    lengths: Integers,
    members: NDArray[np.intp],
    wanted: int,
    tolerance: float,
    generator: np.random.Generator | None,
) -> NDArray[np.intp]:
    """As many samples of one kind, from long to short but for the tolerance."""
    taken = _taken(members, wanted, generator)
    # A key in place: lengths may be ten millions.
    key = np.zeros(wanted)
    if np.isfinite(tolerance):
        np.log(np.maximum(lengths[taken], 1), out=key)
    if generator is not None:
        stretch = generator.random(wanted)
        stretch *= np.log1p(tolerance) if np.isfinite(tolerance) else 1.0
        key += stretch
    np.negative(key, out=key)
    return taken[np.argsort(key, kind="stable")]


def _taken(
    members: NDArray[np.intp], wanted: int, generator: np.random.Generator | None
) -> NDArray[np.intp]:
    """As many of them as wanted: some dropped or some repeated, at random or from the end."""
    over = len(members) - wanted
    if over == 0:
        return members
    if generator is None:
        return members[:wanted] if over > 0 else np.resize(members, wanted)
    if over > 0:
        return np.delete(members, generator.choice(len(members), over, replace=False))
    # No sample is repeated twice before every other one was repeated once.
    return np.concatenate([members, np.resize(generator.permutation(members), -over)])


def _order(
    loads: NDArray[np.float64], recipe: Recipe, generator: np.random.Generator | None
) -> NDArray[np.intp]:
    """The order in which micro-steps of these loads are run.

    Each optimizer step takes a micro-step at random from each of as many classes of length as it
    has micro-steps, so that its samples are spread over all lengths.
    """
    classes = np.argsort(-loads, kind="stable").reshape(recipe.shape.accumulation, -1)
    if generator is None:
        steps = classes.T.copy()
    else:
        steps = generator.permuted(generator.permuted(classes, axis=1).T, axis=1)
    if recipe.longest_first:
        # With its whole optimizer step, so that windows stay what they were.
        step, micro_step = np.argwhere(steps == classes[0, 0])[0]
        steps[[0, step]] = steps[[step, 0]]
        steps[0, [0, micro_step]] = steps[0, [micro_step, 0]]
    order: NDArray[np.intp] = steps.ravel()
    return order
