"""Reads single values out of a document, with their place as origin."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from dsguard.model.fact import Candidate, Origin, OriginKind, Unknown
from dsguard.model.placeholder import is_placeholder
from dsguard.model.tree import Document, Object, join_pointer, split_pointer
from dsguard.model.tree import dotted as dotted_name


@lru_cache(maxsize=1024)
def pointer_of(dotted: str) -> str:
    """The JSON pointer of DeepSpeed's dotted spelling (``zero_optimization.stage``)."""
    pointer = ""
    for token in dotted.split("."):
        pointer = join_pointer(pointer, token)
    return pointer


def written(document: Document | None, *dotted: str) -> Candidate | None:
    """The value the config gives under the first of these dotted keys that it has.

    None where no such key is written, or where it is null, which DeepSpeed reads as absent. What
    is only known when the config is filled in or the script runs is a placeholder: that of the
    key, of a block around it, or one for a key that the script may add.
    """
    if document is None:
        return None
    for key in dotted:
        pointer = pointer_of(key)
        node = document.get(pointer)
        value = node.value if node is not None else _stand_in(document, pointer)
        if value is not None:
            return Candidate(value, Origin(OriginKind.CONFIG, document.locate(pointer)))
    return None


def _stand_in(document: Document, pointer: str) -> str | None:
    """The placeholder that stands for a key which is not there; None where it is surely absent."""
    node, is_open = document.root, False
    for token in split_pointer(pointer):
        if not isinstance(node, Object):
            return str(node.value) if is_placeholder(node.value) else None
        is_open = is_open or node.open
        member = node.member(token)
        if member is None:
            return f"${{{dotted_name(pointer)}}}" if is_open else None
        node = member.node
    return None


def unread(document: Document | None, *dotted: str) -> Unknown | None:
    """The fact of keys whose value is not known yet; None where it is known, or surely absent."""
    value = written(document, *dotted)
    if document is None or value is None or not is_placeholder(value.value):
        return None
    return unfilled(document, next(key for key in dotted if written(document, key) is not None))


def unfilled(document: Document | None, key: str) -> Unknown:
    """The fact of a key whose value is a placeholder."""
    if document is not None and (document.in_code or document.elsewhere or _is_open(document)):
        return Unknown(f"{key} is only known when the script runs")
    return Unknown(f"{key} gets its value before DeepSpeed reads the config")


def _is_open(document: Document) -> bool:
    return isinstance(document.root, Object) and document.root.open


def has(document: Document | None, dotted: str) -> bool:
    """Whether the key is surely written, null included."""
    pointer = pointer_of(dotted)
    return (
        document is not None
        and document.get(pointer) is not None
        and not document.is_perhaps(pointer)
    )


def lacks(document: Document | None, dotted: str) -> bool:
    """Whether the key is surely not written, not even as null."""
    if document is None:
        return True
    pointer = pointer_of(dotted)
    return document.get(pointer) is None and _stand_in(document, pointer) is None


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
