"""What the callbacks of all trainers do: attach for a training, tell the numbers, let go."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dsguard.integrations.pace import Pace
from dsguard.runtime import Guard, guard
from dsguard.runtime.expectation import Asked

if TYPE_CHECKING:
    from collections.abc import Mapping

LOGGER = logging.getLogger("dsguard.guard")


class HeldTraining:
    """The guard of one training after the other.

    Args:
        said_by: where a trainer says its own numbers, as findings name it.
        options: the keyword arguments of :func:`dsguard.guard`; ``expect`` replaces the trainer's.

    ``guard`` is the guard of the running or last training, None before it.
    """

    def __init__(self, said_by: str, options: Mapping[str, Any]) -> None:
        self.guard: Guard | None = None
        self._said_by = said_by
        self._options = options
        self._pace = Pace()

    def attach(self, engine: Any, asked: Mapping[str, Any], advice: str = "") -> None:
        """Guard an engine, held to what its trainer asks for.

        Without an engine the log says so, with ``advice``.
        """
        if engine is None:
            with suppress(Exception):  # a handler of the script may raise
                LOGGER.warning(
                    "GuardCallback found no DeepSpeed engine: the run is not guarded%s", advice
                )
            return
        self.guard = guard(engine, **{"expect": Asked(asked, self._said_by), **self._options})
        self._pace = Pace()

    def metrics(self) -> dict[str, float]:
        """What :class:`Pace` tells; empty without a guard, or without a step since last time."""
        return {} if self.guard is None else self._pace.metrics(self.guard)

    def epoch_end(self) -> None:
        """Micro-batches that wait go into the next epoch."""
        if self.guard is not None:
            self.guard.epoch_end()

    def end(self, *, speaks: bool) -> None:
        """Let go of the engine; one rank says what was really consumed."""
        if self.guard is None:
            return
        self.guard.close()
        if speaks:
            with suppress(OSError, ValueError):  # where stdout is closed, nobody listens
                print(f"dsguard: {self.guard.summary()}")
