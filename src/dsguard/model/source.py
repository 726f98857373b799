"""Text and places in it.

Offsets count Unicode code points from 0; lines and columns count from 1, columns in
code points too. A line ends at a line feed; a carriage return before it belongs to the
line's end and is never shown.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct


class Span(NamedTuple):
    """A half-open stretch ``[start, end)`` of a source, in code points."""

    start: int
    end: int


class Position(NamedTuple):
    """A place as people and editors count it: both numbers start at 1."""

    line: int
    column: int


class Source(Struct, frozen=True, eq=False, dict=True):
    """A text with a name.

    ``name`` is what is shown to the user: the path as it was given, ``<stdin>``, or
    ``<launch command>`` for words that were typed after ``--``. ``is_file`` says whether
    an editor could open that name.
    """

    name: str
    text: str
    is_file: bool = True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        find = self.text.find
        at = find("\n")
        while at != -1:
            starts.append(at + 1)
            at = find("\n", at + 1)
        return starts

    def position(self, offset: int) -> Position:
        """Line and column of a code point; the end of the text is a valid place."""
        line = bisect_right(self._line_starts, offset)
        return Position(line, offset - self._line_starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of a line (counted from 1) without its line end."""
        start = self._line_starts[number - 1]
        end = self._line_starts[number] - 1 if number < len(self._line_starts) else len(self.text)
        return self.text[start:end].removesuffix("\r")

    def start_of(self, number: int) -> int:
        """The offset of the first code point of a line (counted from 1)."""
        return self._line_starts[number - 1]

    def locate(self, span: Span) -> Location:
        """A span of the text as a place."""
        return Location(self, span)

    def slice(self, span: Span) -> str:
        """The text that a span covers."""
        return self.text[span.start : span.end]


class Location(NamedTuple):
    """A span in a source, and the JSON pointer of what stands there, if it is in a document."""

    source: Source
    span: Span
    pointer: str | None = None
