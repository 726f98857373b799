"""Text that remembers where it was written.

The value of a variable is made of chunks; each knows every place it went through, from the
``$NAME`` in the command back to the characters of the assignment. A text put together that way,
such as the command in ``bash -c "$CMD"``, is parsed like any other.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dsguard.model.source import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_DEEPEST = 6
"""How many places a chunk remembers: the outermost ones and the innermost."""


class Chunk(NamedTuple):
    """A run of characters.

    ``places`` lead from the outermost use, such as ``$NAME`` in a command, to where the
    characters are written. ``literal`` says that they stand there one by one, as they are.
    ``known`` is False for what only a running shell could know; ``text`` is then as written.
    """

    text: str
    places: tuple[Span, ...]
    literal: bool = False
    known: bool = True

    def slice(self, start: int, end: int) -> Chunk:
        """The characters ``[start, end)`` of this chunk."""
        if not self.literal:
            return self._replace(text=self.text[start:end])
        origin = self.places[-1].start
        places = (*self.places[:-1], Span(origin + start, origin + end))
        return Chunk(self.text[start:end], places, True, self.known)

    def used_at(self, places: tuple[Span, ...]) -> Chunk:
        """This chunk as the value of an expansion that stands at ``places``."""
        chain = (*places, *self.places)
        if len(chain) > _DEEPEST:
            chain = (*chain[: _DEEPEST - 1], chain[-1])
        return self._replace(places=chain)


Value: TypeAlias = tuple[Chunk, ...]
"""The value of a variable, or one word."""


def text_of(value: Iterable[Chunk]) -> str:
    """The characters of a value."""
    return "".join(chunk.text for chunk in value)


def is_known(value: Iterable[Chunk]) -> bool:
    """Whether nothing in a value is left to a running shell."""
    return all(chunk.known for chunk in value)


def hulls(chains: Sequence[tuple[Span, ...]]) -> tuple[Span, ...]:
    """What several chunks cover together, level by level, outermost first."""
    if len(chains) == 1:
        return chains[0]
    depth = max(map(len, chains), default=0)
    filled = [(*chain, *[chain[-1]] * (depth - len(chain))) for chain in chains]
    return tuple(
        Span(min(span.start for span in level), max(span.end for span in level))
        for level in zip(*filled, strict=True)
    )


class Text:
    """A text to parse, made of chunks."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self.chunks = tuple(chunk for chunk in chunks if chunk.text)
        self.text = text_of(self.chunks)
        self._starts = list(accumulate((len(c.text) for c in self.chunks), initial=0))[:-1]

    @classmethod
    def written(cls, text: str, start: int, end: int) -> Text:
        """A stretch of a source."""
        return cls((Chunk(text[start:end], (Span(start, end),), True),))

    def slice(self, start: int, end: int) -> Value:
        """The chunks of the characters ``[start, end)``."""
        found: list[Chunk] = []
        at = bisect_right(self._starts, start) - 1
        while 0 <= at < len(self.chunks) and self._starts[at] < end:
            chunk, origin = self.chunks[at], self._starts[at]
            found.append(chunk.slice(max(start - origin, 0), min(end - origin, len(chunk.text))))
            at += 1
        return tuple(found)

    def places(self, start: int, end: int) -> tuple[Span, ...]:
        """Where the characters ``[start, end)`` stand, outermost place first."""
        chunks = self.slice(start, end)
        if chunks:
            return hulls([chunk.places for chunk in chunks])
        if not self.chunks:
            return (Span(0, 0),)
        at = max(bisect_right(self._starts, start) - 1, 0)
        offset = min(start - self._starts[at], len(self.chunks[at].text))
        return self.chunks[at].slice(offset, offset).places

    def known(self, start: int, end: int) -> bool:
        """Whether the characters ``[start, end)`` are all known."""
        return is_known(self.slice(start, end))
