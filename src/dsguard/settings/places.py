"""Where a key of a TOML text stands.

No reader of the standard library tells. A statement is complete where the text up to the end of
its last line can be read, so the place is found by reading ever more of the text until the key
is there: the reader itself decides, and nothing of TOML is done again here.
"""

from __future__ import annotations

import re
import sys
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

from dsguard.model.source import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["TomlPath", "place_of", "tomllib", "value_at"]

TomlPath: TypeAlias = tuple[str | int, ...]

_MOST_READ = 400
"""How many beginnings of one text are read to find one place."""
_MOST_CHARACTERS = 4_000_000
"""How long they may be together: a beginning takes as much time as it is long."""


def value_at(data: Any, path: TomlPath) -> Any:
    """The value at a path of keys and indices.

    Raises:
        LookupError: there is none.
    """
    for part in path:
        if not isinstance(data, list if isinstance(part, int) else dict):
            raise LookupError(path)
        data = data[part]  # type: ignore[index]
    return data


def place_of(text: str, path: TomlPath) -> Span:
    """The key or list item at a path, else the statement that makes it.

    The start of the text where nothing is at the path.
    """
    if not path:
        return Span(0, min(1, len(text)))
    beginnings = _Beginnings(text.splitlines(keepends=True))
    end = beginnings.first_with(path)
    if end is None:
        return Span(0, min(1, len(text)))
    return _within(beginnings.lines, beginnings.statement_before(end), end, path)


class _Beginnings:
    """A text up to the end of this or that line, read by the reader of TOML.

    Most ends of a line are the end of a statement, so that few beginnings have to be read to halve
    the lines again and again. A list over thousands of lines would break that: after so many
    beginnings the place is a wider one.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._ends = list(accumulate(map(len, lines), initial=0))
        self._left = _MOST_READ
        self._characters_left = _MOST_CHARACTERS

    def first_with(self, path: TomlPath) -> int | None:
        """The first end of a statement by which there is something at the path."""
        if not _has(_read(self.lines), path):
            return None
        low, high, found = 0, len(self.lines), len(self.lines)
        while low < high:
            middle = (low + high) // 2
            end, data = next(
                (
                    (end, data)
                    for end in range(middle, high)
                    if (data := self._read(end)) is not None
                ),
                (high, None),
            )
            if data is None:
                high = middle
            elif _has(data, path):
                found, high = end, middle
            else:
                low = end + 1
        return found

    def statement_before(self, end: int) -> int:
        """The first line of the statement that is complete at the end of a line."""
        start = end - 1
        while start > 0 and self._read(start) is None:
            start -= 1
        while start < end - 1 and not self.lines[start].partition("#")[0].strip():
            start += 1
        return max(start, 0)

    def _read(self, end: int) -> dict[str, Any] | None:
        if not self._left or self._characters_left < 0:
            return None
        self._left -= 1
        self._characters_left -= self._ends[end]
        return _read(self.lines[:end])


def _has(data: dict[str, Any] | None, path: TomlPath) -> bool:
    try:
        value_at(data, path)
    except LookupError:
        return False
    return True


def _within(lines: Sequence[str], start: int, end: int, path: TomlPath) -> Span:
    offset = sum(map(len, lines[:start]))
    statement = "".join(lines[start:end])
    for word in _words(statement, path):
        match = re.search(word, statement)
        if match is not None:
            return Span(offset + match.start(), offset + match.end())
    indent = len(statement) - len(statement.lstrip())
    line = statement.lstrip().splitlines()[0].rstrip()
    return Span(offset + indent, offset + indent + len(line))


def _words(statement: str, path: TomlPath) -> list[str]:
    """What to look for in a statement: an item of a list, then the key."""
    words: list[str] = []
    if path and isinstance(path[-1], int):
        data = _read([statement])
        try:
            item = value_at(data, path[-2:])
        except LookupError:
            item = None
        if isinstance(item, str):
            words.append(rf"[\"']{re.escape(item)}[\"']")
    elif path:
        words.append(rf"(?<![\w-]){re.escape(str(path[-1]))}(?![\w-])")
    return words


def _read(lines: Sequence[str]) -> dict[str, Any] | None:
    try:
        read: dict[str, Any] = tomllib.loads("".join(lines))
    except (ValueError, RecursionError):
        return None
    return read
