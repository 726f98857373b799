"""What two versions of a document differ in, by JSON pointer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from dsguard.model.tree import Document, Node, Scalar, inside, join_pointer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def changed_pointers(before: Document, after: Document) -> list[str]:
    """The pointers at which something is added, gone or another value, in order.

    Repeated keys count one by one, and ``1``, ``1.0`` and ``true`` are three values.
    """
    numbers: dict[tuple[int, str], int] = {}
    old, new = Counter(_leaves(before, numbers)), Counter(_leaves(after, numbers))
    changed = {number for number, _, _ in (old - new) + (new - old)}
    ways = {number: way for way, number in numbers.items()} if changed else {}
    return sorted(_pointer(number, ways) for number in changed)


def _leaves(
    document: Document, numbers: dict[tuple[int, str], int]
) -> Iterator[tuple[int, str, str]]:
    """Every value by the number of its pointer, type and content.

    An object or array has no content of its own. Numbers stand for pointers, which repeat every
    key on their way: that of a value is given to the number above it and its own key or index.
    """
    waiting: list[tuple[int, Node]] = [(0, document.root)]
    while waiting:
        number, node = waiting.pop()
        if isinstance(node, Scalar):
            yield number, type(node.value).__name__, repr(node.value)
            continue
        yield number, type(node).__name__, ""
        for token, child in inside(node):
            way = number, str(token)
            waiting.append((numbers.setdefault(way, len(numbers) + 1), child))


def _pointer(number: int, ways: dict[int, tuple[int, str]]) -> str:
    tokens: list[str] = []
    while number:
        number, token = ways[number]
        tokens.append(token)
    return "".join(join_pointer("", token) for token in reversed(tokens))


def outside(changed: Iterable[str], named: Iterable[str]) -> list[str]:
    """The changed pointers that stand in none of the named ones."""
    named = frozenset(named)
    return [pointer for pointer in changed if not _stands_in(pointer, named)]


def _stands_in(pointer: str, named: frozenset[str]) -> bool:
    while pointer and pointer not in named:
        pointer = pointer.rpartition("/")[0]
    return pointer in named


def comment_texts(document: Document) -> Counter[str]:
    """The comments of a document, however they are ordered."""
    return Counter(document.source.slice(span) for span in document.comments)
