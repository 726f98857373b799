"""Where the learning-rate scheduler of an engine stands, and who has moved it."""

from __future__ import annotations

import weakref
from typing import Any

_left_at: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
"""Where an engine has left each scheduler; engines may share one."""


class Schedule:
    """The scheduler of one engine, which the engine alone should move.

    Nothing is put on the scheduler: its attributes are its ``state_dict``.
    """

    def __init__(self, scheduler: Any) -> None:
        self._names = [
            # DeepSpeed's own schedulers count iterations, PyTorch's last_epoch.
            name
            for name in ("last_batch_iteration", "last_epoch")
            if isinstance(getattr(scheduler, name, None), int)
        ][:1]
        try:
            self._scheduler = weakref.ref(scheduler)
            hash(scheduler)
        except TypeError:  # no scheduler, or one that cannot be watched
            self._names = []
        self.moves = bool(self._names)
        """Whether there is a scheduler that can be watched."""
        self._seen: int | None = None
        self.left_by_engine()

    def left_by_engine(self) -> None:
        """The engine has moved it, or it was loaded: it stands where it should."""
        self._seen = position = self._position()
        if position is not None:
            _left_at[self._scheduler()] = position

    def moved(self) -> int:
        """Steps that something else than an engine has moved it since the last question."""
        position = self._position()
        if position is None or position == self._seen:
            return 0
        self._seen = position
        scheduler = self._scheduler()
        before = _left_at.get(scheduler, position)
        _left_at[scheduler] = position
        return position - before

    def _position(self) -> int | None:
        if not self._names:
            return None
        position = getattr(self._scheduler(), self._names[0], None)
        return position if isinstance(position, int) else None
