"""What a training script holds beside its engine: an optimizer, a loader."""

from __future__ import annotations

from typing import Any


def highest_learning_rate(optimizer: Any) -> float:
    """The highest of an optimizer's parameter groups; 0 where none is a plain number."""
    groups = getattr(optimizer, "param_groups", ())
    rates = (group.get("lr", 0.0) for group in groups)
    return max((float(rate) for rate in rates if isinstance(rate, (int, float))), default=0.0)


def length_of(dataloader: Any) -> int | None:
    """Batches in one pass; None for no loader, or one over an iterable."""
    try:
        return len(dataloader)
    except TypeError:
        return None
