"""Ordinary micro-batches, counted on the spot.

The training forward of a batch as it was asked for, a backward pass, ``step()`` after each or,
without DeepSpeed and under Accelerate, after the last of a window: nearly all of a run is that,
in this order. On a small model what a guard costs is what it looks at, as a step leaves little of
it in the processor's caches. A hook that sees what is awaited moves ``awaits`` on and touches
nothing else; the windows are told of it when somebody asks.
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
    """Of the open window, those that are done: ``step()`` has returned, or it comes later."""
    steps: bool = True
    """Whether ``step()`` is called in each micro-batch, not only in the last of a window."""
    synchronised: bool = True
    """Whether each backward pass synchronises the gradients, not only the last of a window."""
    declared: bool = False
    """Whether the script tells the engine before each backward pass if it is the last."""
    _closed: int = 0
    _to_close: int = 0
    _windows: Windows = field(default_factory=Windows)

    def expect(
        self,
        accumulation: int,
        samples: int,
        windows: int,
        *,
        steps: bool = True,
        synchronised: bool = True,
        declared: bool = False,
    ) -> None:
        """Count on the spot from now on: between two windows, with no forward pending.

        Args:
            accumulation: Micro-batches in a window.
            samples: In a micro-batch.
            windows: How many may close before they are told.
            steps: As the attribute.
            synchronised: As the attribute.
            declared: As the attribute.
        """
        self.awaits, self.samples = FORWARD, samples
        self.steps, self.synchronised, self.declared = steps, synchronised, declared
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
        if self.awaits != NOTHING:
            self._tell(windows)
            self.awaits, self.micro_batches, self._closed = NOTHING, 0, 0
        return windows

    def snapshot(self) -> Windows:
        """A copy of the windows that is told of everything. Nothing changes: any thread may ask."""
        windows = self._windows.copy()
        if self.awaits != NOTHING:
            self._tell(windows)
        return windows

    def _tell(self, windows: Windows) -> None:
        if self._closed:
            self._micro_batches(windows, self.accumulation - 1)
            windows.forward(self.samples)
            windows.backward(self.accumulation)
            windows.optimizer_step(applied=True)
            windows.step_returned()
        if self._closed > 1:
            windows.repeat(self._closed - 1, self.accumulation, self.accumulation * self.samples)
        self._micro_batches(windows, self.micro_batches)
        if self.awaits != FORWARD:
            windows.forward(self.samples)
        if self.awaits == STEP:
            windows.backward(self.accumulation)

    def _micro_batches(self, windows: Windows, number: int) -> None:
        for _ in range(number):
            windows.forward(self.samples)
            windows.backward(self.accumulation, self.synchronised)
            if self.steps:
                windows.step_returned()
