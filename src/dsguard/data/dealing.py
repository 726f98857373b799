"""Which rank takes which micro-batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def deal(loads: NDArray[np.float64], generator: np.random.Generator | None) -> NDArray[np.intp]:
    """Deal the micro-batches of each micro-step so that the sums of an optimizer step are even.

    The micro-steps of an optimizer step are gone through from the one whose ranks differ most:
    the rank with the least work so far takes the heaviest micro-batch, and so on. Its heaviest
    rank never has more than the sum of the heaviest micro-batches, which is what dealing in the
    order of length gives.

    Args:
        loads: work of each micro-batch, heaviest first within a micro-step; shape (optimizer
            steps, micro-steps, ranks).
        generator: decides between ranks with as little work; None takes the first.

    Returns:
        For each micro-step and rank the place of its micro-batch in ``loads``, same shape.
    """
    steps, micro_steps, ranks = loads.shape
    order = np.argsort(loads[..., -1] - loads[..., 0], axis=1, kind="stable")
    rows = np.arange(steps)
    place = np.empty(loads.shape, dtype=np.intp)
    columns = np.broadcast_to(np.arange(ranks), (steps, ranks))
    sums = np.zeros((steps, ranks))
    if generator is not None:
        sums += generator.random((steps, ranks)) * 1e-6
    for turn in range(micro_steps):
        now = order[:, turn]
        lightest_first = np.argsort(sums, axis=1, kind="stable")
        taken = np.empty_like(lightest_first)
        np.put_along_axis(taken, lightest_first, columns, axis=1)
        place[rows, now] = taken
        sums += np.take_along_axis(loads[rows, now], taken, axis=1)
    return place
