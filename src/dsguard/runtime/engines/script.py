"""What a training script holds beside its engine: an optimizer, a loader."""

from __future__ import annotations

from typing import Any


def highest_learning_rate(optimizer: Any) -> float:
    """The highest of an optimizer's parameter groups; 0 where none is a plain number."""
    highest = 0.0
    for group in getattr(optimizer, "param_groups", ()):
        rate = group.get("lr")
        if isinstance(rate, (int, float)) and rate > highest:
            highest = float(rate)
    return highest


def length_of(dataloader: Any) -> int | None:
    """Batches in one pass; None for no loader, or one over an iterable."""
    try:
        return len(dataloader)
    except TypeError:
        return None
