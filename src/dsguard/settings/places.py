"""Where a key of a TOML text stands.

No reader of the standard library tells. A statement is complete where the text up to the end of
its last line can be read, so the place is found by reading ever more of the text until the key
is there: the reader itself decides, and nothing of TOML is done again here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

from dsguard.model.source import Span

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TomlPath: TypeAlias = tuple[str | int, ...]


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
    lines = text.splitlines(keepends=True)
    word = next((part for part in reversed(path) if isinstance(part, str)), "")
    first = next((number for number, line in enumerate(lines) if word in line), 0)
    for end in range(first + 1, len(lines) + 1):
        if _has(lines[:end], path):
            return _within(lines, _start(lines, end, path), end, path)
    return Span(0, min(1, len(text)))


def _has(lines: Sequence[str], path: TomlPath) -> bool:
    data = _read(lines)
    if data is None:
        return False
    try:
        value_at(data, path)
    except LookupError:
        return False
    return True


def _start(lines: Sequence[str], end: int, path: TomlPath) -> int:
    """The first line of the statement that is complete at the end of a line."""
    start = end - 1
    while start and _read(lines[:start]) is None:
        start -= 1
    while start < end - 1 and not lines[start].partition("#")[0].strip():
        start += 1
    return start


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
    except tomllib.TOMLDecodeError:
        return None
    return read
