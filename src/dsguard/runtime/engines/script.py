"""What a training script holds beside its engine: an optimizer, parameters, a loader."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def highest_learning_rate(optimizer: Any) -> float:
    """The highest of an optimizer's parameter groups; 0 where none is a plain number."""
    highest = 0.0
    for group in getattr(optimizer, "param_groups", ()):
        rate = group.get("lr")
        if isinstance(rate, (int, float)) and rate > highest:
            highest = float(rate)
    return highest


def parameters_of(optimizer: Any) -> Iterator[Any]:
    """The parameters that an optimizer steps on, of all its groups."""
    for group in optimizer.param_groups:
        yield from group["params"]


def first_trainable(parameters: Iterable[Any]) -> Callable[[], Any]:
    """The first that takes a gradient, held weakly; the answer is None where there is none."""
    for parameter in parameters:
        if parameter.requires_grad:
            return weakref.ref(parameter)
    return lambda: None


def length_of(dataloader: Any) -> int | None:
    """Batches in one pass; None for no loader, or one over an iterable."""
    try:
        return len(dataloader)
    except TypeError:
        return None
