"""How many samples each micro-step takes, before it is known which.

A *micro-step* is one micro-batch on every rank. All ranks take as many samples in it, so that
they have as many batches and each sample weighs the same. The counts depend on lengths and
settings alone: every epoch has as many batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dsguard.data.lengths import Integers
    from dsguard.data.shape import Shape


@dataclass(frozen=True)
class Budget:
    """At most ``max_tokens`` tokens (samples times the longest of them) in a micro-batch.

    Lengths may be taken for up to ``slack`` times what they are when batches are made.
    """

    max_tokens: int
    slack: float


def micro_step_counts(
    lengths: Sequence[Integers],
    names: Sequence[str],
    shape: Shape,
    budget: Budget | None,
    drop_last: bool,
) -> list[NDArray[np.int64]]:
    """Samples of one rank in each micro-step, for each kind of sample, longest samples first.

    The micro-steps of all kinds together fill whole optimizer steps. What they take less than
    there is, is dropped; what they take more, repeated.

    Args:
        lengths: of the samples of each kind, in tokens.
        names: what the kinds are called.
        shape: ranks, samples and accumulation.
        budget: None takes ``micro_batch_size`` samples always.
        drop_last: drop samples that fill no micro-step instead of repeating others.

    Raises:
        ValueError: nothing of a kind would ever be seen, or a sample is longer than the budget.
    """
    if budget is None:
        counts = [_fixed(len(members), shape, drop_last) for members in lengths]
    else:
        counts = [_budgeted(members, shape, budget, drop_last) for members in lengths]
    _whole_steps(counts, shape, drop_last, splits=budget is not None)
    for name, members, made in zip(names, lengths, counts, strict=True):
        if not len(made):
            kind = f" of modality {name}" if name else ""
            size = shape.micro_batch_size or 1
            raise ValueError(
                f"{len(members)} samples{kind} fill no optimizer step of {shape.world_size} ranks "
                f"× {size} × {shape.accumulation}, and drop_last=True drops them all: say "
                "drop_last=False, which repeats some"
            )
    return counts


def _fixed(samples: int, shape: Shape, drop_last: bool) -> NDArray[np.int64]:
    size = shape.micro_batch_size
    assert size is not None, "without a budget the size is given"
    at_once = shape.world_size * size
    steps = samples // at_once if drop_last else -(-samples // at_once)
    return np.full(steps, size, dtype=np.int64)


def _budgeted(
    lengths: Integers, shape: Shape, budget: Budget, drop_last: bool
) -> NDArray[np.int64]:
    """From the longest to the shortest: as many samples as the longest of them allows."""
    ranks, samples = shape.world_size, len(lengths)
    longest = int(np.argmax(lengths))
    if lengths[longest] > budget.max_tokens:
        raise ValueError(
            f"a sample has {lengths[longest]} tokens, more than max_tokens={budget.max_tokens}: "
            "raise it, or shorten such samples"
        )
    limits = np.sort(lengths)[::-1]
    # Repeated samples push the others back, by less than one sample a rank.
    shift = 0 if drop_last else ranks - 1
    most = shape.micro_batch_size or samples
    counts: list[int] = []
    taken = 0
    while taken < samples:
        limit = max(float(limits[max(0, taken - shift)]), 1.0) * budget.slack
        count = min(max(1, int(budget.max_tokens // limit)), most)
        left = samples - taken
        if ranks * count > left:
            count = left // ranks if drop_last else -(-left // ranks)
        if count == 0:
            break
        counts.append(count)
        taken += ranks * count
    return np.asarray(counts, dtype=np.int64)


def _whole_steps(
    counts: list[NDArray[np.int64]], shape: Shape, drop_last: bool, *, splits: bool
) -> None:
    """Make the micro-steps of all kinds a multiple of the accumulation, in place.

    Under a budget (``splits``) micro-steps of several samples become two. Else, and where there
    are none, the kind with the most micro-steps loses or gains some.
    """
    missing = -sum(map(len, counts)) % shape.accumulation
    while splits and missing:
        kind = max(range(len(counts)), key=lambda k: int(counts[k].max(initial=0)))
        at = int(np.argmax(counts[kind]))
        count = int(counts[kind][at])
        if count < 2:
            break
        counts[kind] = np.insert(counts[kind], at, count - count // 2)
        counts[kind][at + 1] = count // 2
        missing -= 1
    over = (shape.accumulation - missing) % shape.accumulation
    kind = max(range(len(counts)), key=lambda k: len(counts[k]))
    if over and drop_last:
        counts[kind] = counts[kind][: max(0, len(counts[kind]) - over)]
    elif over:
        more = np.repeat(counts[kind][-1:], shape.accumulation - over)
        counts[kind] = np.concatenate([counts[kind], more])
