"""Runs in which anything may happen, and what a guard has counted in them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from dsguard import Guard
from dsguard.runtime.windows import Windows

EVENTS = 160

OF_THE_RUN = ("boundary", "reduced", "through_engine", "resized", "interrupted", "probing")


def at_random(
    watched: Guard,
    seed: int,
    micro_batch: Callable[[], Any],
    odd: Sequence[Callable[[], Any]],
) -> list[Any]:
    """What the guard has counted each time that something was odd."""
    chance = random.Random(seed)
    seen: list[Any] = []
    for _ in range(EVENTS):
        if chance.random() < 0.93:
            micro_batch()
        else:
            chance.choice(odd)()
            seen.append(watched.summary())
            if chance.random() < 0.5:
                seen.append(state(watched))
    return seen


def at_each_place(
    watched: Guard, accumulation: int, micro_batch: Callable[[], Any], odd: Callable[[], Any]
) -> list[Any]:
    """What the guard has counted after it, and one later, at each place of a window."""
    seen: list[Any] = []
    for place in range(accumulation):
        for _ in range(2 * accumulation + place):
            micro_batch()
        odd()
        seen.append(watched.summary())
        micro_batch()
        seen.append(state(watched))
    return seen


def counts(windows: Windows) -> dict[str, Any]:
    """All that the windows hold."""
    kept = {name: getattr(windows, name) for name in windows.__slots__}
    return kept | {"sizes": dict(windows.sizes), "samples": dict(windows.samples)}


def state(watched: Guard) -> dict[str, Any]:
    """All that the windows and the run hold; the windows are told each event from now on."""
    run = watched._tap.run
    return counts(run.windows) | {name: getattr(run, name) for name in OF_THE_RUN}
