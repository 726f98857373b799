"""The stretches of text that every part of the HJSON reader passes over.

Lines end at a carriage return, too: files are opened with universal newlines.
"""

from __future__ import annotations

import re

BLANK = re.compile(r"[ \t\n\r]*")
"""White space between tokens. Nothing else counts, not even a form feed."""

LINE_END = r"\r\n?|\n"


def pass_over(stretch: re.Pattern[str], text: str, at: int) -> int:
    """Where a pattern that may match nothing ends, or ``at`` where it does not match."""
    found = stretch.match(text, at)
    return found.end() if found else at


def end_of_line(text: str, at: int) -> int:
    """Where the line ends that ``at`` is in."""
    return pass_over(re.compile(r"[^\r\n]*"), text, at)
