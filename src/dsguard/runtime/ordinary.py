"""Ordinary micro-batches, counted on the spot.

The training forward of a batch as it was asked for, a backward pass by the engine, ``step()``:
nearly all of a run is that, in this order. On a small model what a guard costs is what it looks
at, as a step leaves little of it in the processor's caches. A hook that sees what is awaited
moves ``awaits`` on and touches nothing else; the windows are told of it when somebody asks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dsguard.runtime.windows import Windows

FORWARD, BACKWARD, STEP, NOTHING = range(4)


@dataclass(eq=False, slots=True)
class Ordinary:
    """What the windows have not been told yet, from the beginning of a window on."""

    awaits: int = NOTHING
    """What would be ordinary next; ``NOTHING``: the windows are told each event themselves."""
    samples: int = 0
    """In an ordinary batch."""
    accumulation: int = 0
    micro_batches: int = 0
    """Of the open window, those that ``step()`` has returned for."""
    _closed: int = 0
    _to_close: int = 0
    _windows: Windows = field(default_factory=Windows)

    def expect(self, accumulation: int, samples: int, windows: int) -> None:
        """Count on the spot from now on: between two windows, with no forward pending.

        Args:
            accumulation: Micro-batches in a window.
            samples: In a micro-batch.
            windows: How many may close before they are told.
        """
        self.awaits, self.samples = FORWARD, samples
        self.accumulation, self._to_close = accumulation, windows

    def closes(self) -> bool:
        """Count the optimizer step that ends a window, if that needs nobody else."""
        if (
            self.awaits != STEP
            or self.micro_batches + 1 != self.accumulation
            or self._closed >= self._to_close
        ):
            return False
        self._closed += 1
        self.micro_batches = 0
        self.awaits = FORWARD
        return True

    def open(self) -> bool:
        """Whether a backward pass has come since the last optimizer step."""
        return self.awaits == STEP or bool(self.micro_batches or self._windows.open)

    def windows(self) -> Windows:
        """The windows, told of everything; from now on they are told each event themselves."""
        windows = self._windows
        if self.awaits == NOTHING:
            return windows
        awaits, self.awaits = self.awaits, NOTHING
        closed, self._closed = self._closed, 0
        micro_batches, self.micro_batches = self.micro_batches, 0
        if closed:
            self._tell(self.accumulation, closed=True)
        if closed > 1:
            windows.repeat(closed - 1, self.accumulation, self.accumulation * self.samples)
        self._tell(micro_batches)
        if awaits != FORWARD:
            windows.forward(self.samples)
        if awaits == STEP:
            windows.backward(self.accumulation)
        return windows

    def _tell(self, micro_batches: int, *, closed: bool = False) -> None:
        windows = self._windows
        for number in range(1, micro_batches + 1):
            windows.forward(self.samples)
            windows.backward(self.accumulation)
            if closed and number == micro_batches:
                windows.optimizer_step(applied=True)
            windows.step_returned()
