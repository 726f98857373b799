"""Small numbers of a device, read when they have arrived instead of waiting for them.

``tensor.item()`` makes the host wait until the device has done everything before it. Here the
number is copied to pinned memory behind the device's other work, and read once an event says
that it is there.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_WAITING = 8
"""Numbers that may be under way; more are dropped, they are samples anyway."""


class Later:
    """Numbers under way, each with what is to be done with it."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Any, Any, Callable[[float], None]]] = deque(maxlen=_WAITING)
        """What is under way."""

    def read(self, tensor: Any, then: Callable[[float], None]) -> bool:
        """Call ``then`` with a one-element tensor's value: now on a CPU, else from :meth:`arrive`.

        A device that has no events of its own is not asked at all. True says that the number
        is on its way.
        """
        if tensor.device.type == "cpu":
            then(float(tensor))
            return False
        if tensor.device.type != "cuda":
            return False
        import torch

        landed = torch.empty((), dtype=torch.float32, pin_memory=True)
        landed.copy_(tensor.detach().reshape(()), non_blocking=True)
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record()
        self.waiting.append((event, landed, then))
        return True

    def arrive(self) -> None:
        """Hand over what has arrived; never waits."""
        while self.waiting and self.waiting[0][0].query():
            _, landed, then = self.waiting.popleft()
            then(float(landed))
