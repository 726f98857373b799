"""Which line of the user's own code is running.

Asked only when there is something to report; until then the guard never looks at a frame.
"""

from __future__ import annotations

import linecache
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dsguard.model.source import Location, Source, Span

if TYPE_CHECKING:
    from types import FrameType

_NOT_THE_SCRIPT = frozenset(
    {
        "accelerate",
        "deepspeed",
        "dsguard",
        "lightning",
        "lightning_fabric",
        "pytorch_lightning",
        "torch",
        "transformers",
        "trl",
    }
)

_LIBRARIES = (Path(os.__file__).parent, Path(sys.prefix, "lib"))

NOWHERE = Location(Source("<running engine>", "", is_file=False), Span(0, 0))


def here() -> Location:
    """The innermost frame that belongs to no framework, as a line of its file.

    :data:`NOWHERE` where there is none, as at the end of the process.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        name = frame.f_code.co_filename
        if package not in _NOT_THE_SCRIPT and _is_code_of_a_user(name):
            return line_of(name, frame.f_lineno)
        frame = frame.f_back
    return NOWHERE


def line_of(filename: str, number: int) -> Location:
    """A whole line of a Python file, without its indentation."""
    lines = linecache.getlines(filename)
    if not 0 < number <= len(lines):
        return Location(Source(f"{_shown(filename)}:{number}", "", is_file=False), Span(0, 0))
    start = sum(len(line) for line in lines[: number - 1])
    line = lines[number - 1].rstrip("\r\n")
    indent = len(line) - len(line.lstrip())
    return Location(
        Source(_shown(filename), "".join(lines)), Span(start + indent, start + len(line))
    )


def _is_code_of_a_user(filename: str) -> bool:
    if filename.startswith("<"):
        return False
    path = Path(filename).absolute()
    return not any(path.is_relative_to(library) for library in _LIBRARIES)


def _shown(filename: str) -> str:
    try:
        relative = os.path.relpath(filename)
    except (OSError, ValueError):  # a deleted working folder, or another Windows drive
        return filename
    return filename if relative.startswith(os.pardir) else relative
