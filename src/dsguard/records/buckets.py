"""Downsampling: a long column as few buckets, each with its lowest, mean and highest value."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Buckets(NamedTuple):
    """One entry a bucket; None where none of its values is known."""

    low: list[float | None]
    mean: list[float | None]
    high: list[float | None]


def edges(length: int, limit: int) -> list[int]:
    """Where to cut ``length`` values into at most ``limit`` buckets of nearly equal size.

    Bucket ``i`` is ``values[edges[i]:edges[i + 1]]``, and none is empty.
    """
    count = min(length, limit)
    return [index * length // count for index in range(count + 1)] if count else [0]


def buckets(values: Sequence[float], cuts: Sequence[int]) -> Buckets:
    """The values between the cuts; NaN stands for an unknown value."""
    made = Buckets([], [], [])
    for start, end in pairwise(cuts):
        known = [value for value in values[start:end] if not math.isnan(value)]
        made.low.append(min(known) if known else None)
        made.mean.append(math.fsum(known) / len(known) if known else None)
        made.high.append(max(known) if known else None)
    return made
