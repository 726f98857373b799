"""The start and the end of the program, as ``dsguard`` and as ``python -m dsguard``."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress

_GARBAGE = (200_000, 50)
"""So many new objects are worth a look for garbage, and so many looks one at older objects."""

_INTERRUPTED = 130
"""Exit code of a shell for a program that Ctrl-C has ended."""


def main() -> None:
    """Run the program on ``sys.argv`` and exit with its code."""
    try:
        _run()
    except KeyboardInterrupt:  # before the program is there, which exits with the same
        sys.exit(_INTERRUPTED)


def _run() -> None:
    # What is imported is no garbage, and looking for it is a tenth of a cold start.
    gc.set_threshold(*_GARBAGE)
    from dsguard.cli.streams import guard_streams

    guard_streams()
    from dsguard.cli.app import main
    from dsguard.model.digits import MOST_DIGITS

    if hasattr(sys, "set_int_max_str_digits"):  # from Python 3.10.7 on
        sys.set_int_max_str_digits(MOST_DIGITS)
    try:
        main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            _leave(end.code or 0)
        raise


def _leave(code: int) -> None:
    """End at once: Python would free every object first, a fifth of the time of a cold check.

    Returns where Python has to do it, because somebody measures the program or a stream fails.
    """
    if _measured():
        return
    with suppress(OSError, ValueError):
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(code)


def _measured() -> bool:
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return True
    # From Python 3.12 on, cProfile and coverage use this in place of the two.
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and any(map(monitoring.get_tool, range(6)))


if __name__ == "__main__":
    main()
