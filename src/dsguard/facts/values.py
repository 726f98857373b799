"""Reads single values out of a document, with their place as origin."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from dsguard.model.fact import Candidate, Origin, OriginKind, Unknown
from dsguard.model.tree import Document, Object, join_pointer


@lru_cache(maxsize=1024)
def pointer_of(dotted: str) -> str:
    """The JSON pointer of DeepSpeed's dotted spelling (``zero_optimization.stage``)."""
    pointer = ""
    for token in dotted.split("."):
        pointer = join_pointer(pointer, token)
    return pointer


def written(document: Document | None, *dotted: str) -> Candidate | None:
    """The value the config gives under the first of these dotted keys that it has.

    None where no such key is written, or where it is null, which DeepSpeed reads as absent.
    """
    if document is None:
        return None
    for key in dotted:
        pointer = pointer_of(key)
        node = document.get(pointer)
        if node is not None and node.value is not None:
            location = document.locate(pointer)
            return Candidate(node.value, Origin(OriginKind.CONFIG, location))
    return None


def unfilled(key: str) -> Unknown:
    """The fact of a key whose value is a placeholder."""
    return Unknown(f"{key} gets its value before DeepSpeed reads the config")


def has(document: Document | None, dotted: str) -> bool:
    """Whether the key is written at all, null included."""
    return document is not None and document.get(pointer_of(dotted)) is not None


def block(document: Document | None, dotted: str) -> bool:
    """Whether the config holds an object under this key."""
    return document is not None and isinstance(document.get(pointer_of(dotted)), Object)


LARGEST_COUNT = 10**15
"""A batch size or number of ranks above this is no count, and arithmetic on it proves nothing."""


def is_count(value: Any) -> bool:
    """Whether a number may count samples, steps or ranks."""
    return is_number(value) and abs(value) <= LARGEST_COUNT


def is_number(value: Any) -> bool:
    """Whether DeepSpeed can calculate with a value (booleans count as 0 and 1 in Python)."""
    return isinstance(value, (int, float))


_SWITCHES = {
    **dict.fromkeys(("1", "on", "t", "true", "y", "yes"), True),
    **dict.fromkeys(("0", "f", "false", "n", "no", "off"), False),
}


def as_switch(value: Any) -> bool | None:
    """A switch as DeepSpeed's pydantic blocks read it; None where they refuse the value.

    Source: pydantic's documentation, "Conversion table", and pydantic-core (``str_as_bool``).
    """
    if isinstance(value, str):
        return _SWITCHES.get(value.lower())
    return bool(value) if is_number(value) and value in (0, 1) else None
