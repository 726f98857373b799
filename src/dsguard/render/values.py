"""Values of facts and reasons, as JSON and as a few words."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from enum import Enum
from itertools import islice
from typing import Any

import msgspec

_DEEPEST = 32
_LONGEST = 60
_MOST_BITS = 8192
"""Larger integers are named by their size: Python refuses to write very long ones."""


def json_value(value: Any, depth: int = 0, most: int | None = None) -> Any:
    """A value as standard JSON can hold it.

    NaN and the infinities become the strings ``NaN``, ``Infinity`` and ``-Infinity``; what
    is nested too deeply becomes ``…``; what JSON has no type for becomes its text. No more than
    ``most`` members of a list or an object are taken.
    """
    if isinstance(value, Enum):
        return json_value(value.value, depth, most)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        bits = value.bit_length()
        return value if bits <= _MOST_BITS else f"an integer of {bits} bits"
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if depth >= _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        members = islice(value.items(), most)
        return {str(key): json_value(item, depth + 1, most) for key, item in members}
    if isinstance(value, Sequence | Set) and not isinstance(value, bytes | bytearray):
        return [json_value(item, depth + 1, most) for item in islice(value, most)]
    return str(value)


def json_text(data: Any, indent: int | None = 2) -> str:
    """Standard JSON that a terminal and an encoder can bear; on one line without ``indent``."""
    compact = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    if indent is None:
        return printable_json(compact)
    try:
        # The standard library indents in Python, five times as slowly.
        text = msgspec.json.format(compact, indent=indent)
    except UnicodeEncodeError:  # half of a surrogate pair
        text = json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False)
    return printable_json(text)


def json_object(members: Mapping[str, Any]) -> str:
    """:func:`json_text` of an object whose members may be iterators, for lists of any length."""
    written = [
        f'  "{name}": {_json_items(value) if isinstance(value, Iterator) else _nested(value, 2)}'
        for name, value in members.items()
    ]
    return "{\n" + ",\n".join(written) + "\n}"


def _json_items(items: Iterator[Any]) -> str:
    written = ",\n    ".join(_nested(item, 4) for item in items)
    return f"[\n    {written}\n  ]" if written else "[]"


def _nested(data: Any, indent: int) -> str:
    # No string in JSON holds a line break.
    return json_text(data).replace("\n", "\n" + " " * indent)


def printable_json(text: str) -> str:
    """JSON in which what moves the cursor, reorders a line or cannot be encoded is an escape."""
    if text.replace("\n", "").isprintable():
        return text
    # Such characters stand inside strings only, where JSON has an escape for each.
    return "".join(
        char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text
    )


def show_value(value: Any) -> str:
    """A value as a message or a table cell shows it, cut when long.

    A string stands without quotes unless it would then read as something else.
    """
    plain = json_value(value, most=_LONGEST)  # each takes a character, and the rest is cut
    if plain is None:
        return "none"
    bare = isinstance(plain, str) and not (isinstance(value, str) and _ambiguous(plain))
    text = plain if bare else json.dumps(plain, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _ambiguous(text: str) -> bool:
    """Whether a string without its quotes could be taken for another value."""
    if text != text.strip() or not text:
        return True
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
