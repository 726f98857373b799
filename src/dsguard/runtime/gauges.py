"""What a record asks an engine at each optimizer step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Gauges(Protocol):
    """What a kind of engine can tell about the step it takes, without waiting for a device."""

    def learning_rate(self) -> float | None:
        """The highest of the parameter groups, now."""

    def loss_scale(self) -> float | None:
        """Of the fp16 optimizer, now; None without fp16."""

    def grad_norm(self) -> Any:
        """Of the step just taken: a number, a one-element tensor, or None where it is unknown."""

    def monitor(self) -> tuple[Any, int] | None:
        """DeepSpeed's monitor, if it is enabled, and the samples of all ranks so far."""


class RateOnly:
    """Gauges of a loop of which only the learning rate is known."""

    def __init__(self, learning_rate: Callable[[], float]) -> None:
        self.learning_rate = learning_rate

    def loss_scale(self) -> float | None:
        """Not known."""
        return None

    def grad_norm(self) -> Any:
        """Not known."""
        return None

    def monitor(self) -> tuple[Any, int] | None:
        """None."""
        return None
