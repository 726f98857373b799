"""Counting calls: what a stopwatch would measure, were the machine always the same."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import TraceFunction


def calls(run: Callable[[], object]) -> int:
    """How many Python functions are called."""
    count = 0

    def see(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(see)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def lines(run: Callable[[], object]) -> int:
    """How many lines of Python are executed, for loops that call no function."""
    count = 0

    def see(frame: FrameType, event: str, argument: object) -> TraceFunction:
        nonlocal count
        count += event == "line"
        return see

    before = sys.gettrace()
    sys.settrace(see)
    try:
        run()
    finally:
        sys.settrace(before)
    return count
