"""Whether the ranks have as much work as each other, counted locally and compared now and then.

What a batch holds is read from shapes. How much of it is padding is asked of the device, in its
own time: the counts stay there until the ranks are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dsguard.runtime.ranks import all_ranks, device_of_collectives
from dsguard.runtime.tokens import count_tokens, padding_mask

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dsguard.runtime.windows import Window

_UNKNOWN = -1


class Balance(NamedTuple):
    """How even the last ``steps`` optimizer steps were over ``ranks`` ranks.

    A rank's load is its tokens with padding. ``imbalance``: load of the rank with the most / mean
    - 1, mean over the steps. ``waiting``: the share of each step in which the ranks wait for that
    one on average, where time goes by tokens. ``busiest`` has the most tokens of all steps
    together, ``busiest_load`` times the mean. ``padding``: share of the tokens that attention
    masks leave out. ``samples``: of all ranks in one step. None where it could not be counted.
    """

    steps: int
    ranks: int
    imbalance: float | None
    waiting: float | None
    busiest: int | None
    busiest_load: float | None
    padding: float | None
    samples: float | None


class BalanceMeter:
    """Counts of one rank between two comparisons."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._rows: list[list[int]] = []
        """Samples, tokens and tokens that are no padding of each step, where known."""
        self._on_device: list[list[Any]] = []
        """What the device counts of the last of them, to be added."""
        self._tokens: int | None = 0
        self._unpadded: int | None = 0
        self._counting: list[Any] = []

    def batch(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """A training forward is about to run. Never raises: all ranks have to compare."""
        try:
            self._count(args, kwargs)
        except Exception:
            self._tokens = self._unpadded = None

    def step(self, window: Window) -> Balance | None:
        """An optimizer step; after every so many, what all ranks have counted.

        That is a collective: every rank has to take the same steps.
        """
        known = (window.samples, self._tokens, self._unpadded)
        self._rows.append([_UNKNOWN if value is None else value for value in known])
        self._on_device.append(self._counting)
        self._tokens, self._unpadded, self._counting = 0, 0, []
        if len(self._rows) < self._every:
            return None
        rows, self._rows = self._rows, []
        counting, self._on_device = self._on_device, []
        return _measured(all_ranks(_as_tensor(rows, counting)))

    def _count(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        tokens = count_tokens(args, kwargs)
        if tokens.total is None or self._tokens is None:
            self._tokens = self._unpadded = None
            return
        self._tokens += tokens.total
        if self._unpadded is None:
            return
        if tokens.unpadded is not None:
            self._unpadded += tokens.unpadded
            return
        mask = padding_mask(args, kwargs)
        if mask is None:
            self._unpadded = None
        else:
            self._counting.append(mask.count_nonzero())


def _as_tensor(rows: list[list[int]], counting: list[list[Any]]) -> Any:
    """Shape (steps, 3); what the device has counted is added there."""
    import torch

    values = torch.tensor(rows, dtype=torch.int64, device=device_of_collectives())
    for row, counts in zip(values, counting, strict=True):
        for count in counts:
            row[2] += count.to(values.device)
    return values


def _measured(counted: Any) -> Balance:
    """From counts of all ranks on the CPU; shape (ranks, steps, 3)."""
    ranks, steps, _ = counted.shape
    samples, tokens, unpadded = counted.double().unbind(dim=-1)
    imbalance = waiting = busiest = busiest_load = padding = None
    if (tokens > 0).all():
        highest, mean = tokens.max(dim=0).values, tokens.mean(dim=0)
        imbalance = float((highest / mean).mean()) - 1
        waiting = 1 - float(mean.sum() / highest.sum())
        of_rank = tokens.sum(dim=1)
        busiest = int(of_rank.argmax())
        busiest_load = float(of_rank[busiest] / of_rank.mean())
        if (unpadded >= 0).all():
            padding = 1 - float(unpadded.sum() / tokens.sum())
    in_step = float(samples.sum(dim=0).mean()) if (samples >= 0).all() else None
    return Balance(steps, ranks, imbalance, waiting, busiest, busiest_load, padding, in_step)
