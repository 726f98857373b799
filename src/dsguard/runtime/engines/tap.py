"""What hooks are given to do their work with: one guard, seen from an engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dsguard.runtime.later import Later
from dsguard.runtime.moments import Moment, OptimizerStepped, ParametersWatched
from dsguard.runtime.patches import Patches

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dsguard.runtime.balance import BalanceMeter
    from dsguard.runtime.fingerprint import Fingerprint
    from dsguard.runtime.records import Recorder
    from dsguard.runtime.run import Run
    from dsguard.runtime.watch import Watch
    from dsguard.runtime.windows import Window


_CLEAN_WINDOWS = 3
_SAMPLE_EVERY = 50


@dataclass(slots=True)
class Tap:
    """Tells moments and closed windows, and keeps what has to be undone.

    ``at_step`` is called with each closed window that is told, outside autograd and the engine;
    ``waits`` says whether it needs the next one.
    """

    run: Run
    watch: Watch
    learning_rate: Callable[[], float]
    at_step: Callable[[Window], None] | None
    waits: Callable[[], bool]
    recorder: Recorder
    meter: BalanceMeter | None = None
    fingerprint: Fingerprint | None = None
    later: Later = field(default_factory=Later)
    patches: Patches = field(default_factory=Patches)
    handles: list[Any] = field(default_factory=list)
    watches_batches: bool = False
    """Whether anybody wants to see the batches of training forwards."""
    window_closed: Window | None = None
    """The window that has ended; :meth:`settle` tells it, when the engine is done."""
    records: bool = field(init=False)
    """Whether anybody wants records."""
    _accumulation: int | None = field(default=None, init=False)
    """What was asked for, or what the engine counted, when the two were compared last."""
    _whole: bool = field(default=False, init=False)
    """Whether the last window was one of these, and applied."""

    def __post_init__(self) -> None:
        self.records = self.recorder.wanted
        self.watches_batches = self.records or self.meter is not None

    def tell(self, moment: Moment, *, in_autograd: bool = False) -> None:
        """Ask the rules of this moment."""
        self.watch.tell(moment, in_autograd=in_autograd)

    def batch(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """A training forward is about to run on this batch."""
        self.recorder.batch(args, kwargs, self.run.windows)
        if self.meter is not None:
            self.meter.batch(args, kwargs)

    def stepping(self) -> None:
        """The optimizer is about to step: the scheduler has not moved, the scale is what it was."""
        self.recorder.stepping()

    def settle(self) -> None:
        """Tell what happened while nothing could be told, and hand over numbers on their way."""
        window, self.window_closed = self.window_closed, None
        if window is None:
            return
        if self.later.waiting:
            self.later.arrive()
        run, print_ = self.run, self.fingerprint
        if (
            print_ is not None
            and window.applied
            and (run.probing or not print_.settled)
            and self.learning_rate() > 0
            and print_.look()
            and print_.unmoved_steps
        ):
            self.tell(ParametersWatched(run, print_.unmoved_steps, print_.low_precision))
        run.probing = window.number < _CLEAN_WINDOWS or window.number % _SAMPLE_EVERY == 0
        try:
            if self.at_step is not None:
                self.at_step(window)
            expected = window.expected
            if expected != self._accumulation or run.resized:
                self._accumulation = run.accumulation()
            self._whole = window.applied and window.micro_batches == expected == self._accumulation
            if run.probing or not self._whole:
                self.tell(OptimizerStepped(run, window))
        finally:
            if self.records:
                self.recorder.step(window)
            run.resized = run.interrupted = False

    def untold(self, window: Window) -> int | None:
        """How many windows like this one, settled just now, may close before the next is told.

        None: each micro-batch is looked at.
        """
        if self.run.probing or self.watches_batches or not self._whole:
            return None
        moving = self.fingerprint is None or self.fingerprint.settled
        if self.waits() or self.later.waiting or not moving:
            return 0
        return -(window.number + 1) % _SAMPLE_EVERY

    def forget_parameters(self) -> None:
        """Parameters were replaced from outside; they are compared with nothing earlier."""
        if self.fingerprint is not None:
            self.fingerprint.forget()

    def detach(self) -> None:
        """Undo every patch and hook."""
        self.watch.stopped = True
        for handle in self.handles:
            handle.remove()
        self.handles.clear()
        self.patches.remove()
        self.fingerprint = None
