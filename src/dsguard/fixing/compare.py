"""What two versions of a document differ in, by JSON pointer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from dsguard.model.tree import Document, leaves

if TYPE_CHECKING:
    from collections.abc import Iterable


def changed_pointers(before: Document, after: Document) -> list[str]:
    """The pointers at which something is added, gone or another value, in order.

    Repeated keys count one by one, and ``1``, ``1.0`` and ``true`` are three values.
    """
    old, new = Counter(leaves(before.root)), Counter(leaves(after.root))
    return sorted({pointer for pointer, _, _ in (old - new) + (new - old)})


def outside(changed: Iterable[str], named: Iterable[str]) -> list[str]:
    """The changed pointers that stand in none of the named ones."""
    named = tuple(named)
    return [
        pointer
        for pointer in changed
        if not any(pointer == name or pointer.startswith(f"{name}/") for name in named)
    ]


def comment_texts(document: Document) -> Counter[str]:
    """The comments of a document, however they are ordered."""
    return Counter(document.source.slice(span) for span in document.comments)
