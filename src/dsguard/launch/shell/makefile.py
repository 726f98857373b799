"""Shell commands in the recipes of a Makefile.

make replaces its own variables in the text of a recipe before a shell sees it. Conditionals,
functions and rule-specific variables are not evaluated: what they decide is not known. Source:
GNU make manual, chapters 5 and 6.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dsguard.launch.shell.text import Chunk, Text
from dsguard.model.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

_ASSIGNMENT = re.compile(r"(?:export\s+|override\s+)*([\w.-]+)\s*(\?|::?:?|\+|!)?=[ \t]*")
_REFERENCE = re.compile(
    r"\$(?:\((?P<round>[\w.-]+)\)|\{(?P<curly>[\w.-]+)\}|(?P<other>.))", re.DOTALL
)
_DEEPEST = 20
_BUDGET = 2_000
"""How many variables are replaced in one Makefile."""
_LARGEST = 1 << 20
"""So many characters are inserted for them."""
_CHUNK = 20
"""A chunk, which has places of its own, is as much work as so many characters."""


def recipes(source: Source) -> Iterator[Text]:
    """The text of every command line of every recipe, as the shell gets it."""
    makefile = _Makefile(source)
    for start, end in makefile.commands:
        yield Text(makefile.expanded(start, end, 0))


class _Makefile:
    """The variables and the recipe lines of one Makefile."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.variables: dict[str, list[Span] | None] = {}
        self.commands: list[Span] = []
        self.replaced = 0
        self.inserted = 0
        conditions = 0
        for span in _logical_lines(source.text):
            line = source.slice(span)
            if line.startswith("\t"):
                skipped = len(line) - len(line.lstrip("\t @+-"))
                self.commands.append(Span(span.start + skipped, span.end))
                continue
            if re.match(r" *(ifn?eq|ifn?def)\b", line):
                conditions += 1
            elif re.match(r" *endif\b", line):
                conditions = max(conditions - 1, 0)
            else:
                self._assignment(line.partition("#")[0], span.start, certain=not conditions)

    def _assignment(self, line: str, start: int, *, certain: bool) -> None:
        found = _ASSIGNMENT.match(line.lstrip(" "))
        if found is None:
            return
        origin = start + len(line) - len(line.lstrip(" "))
        name, operator = found[1], found[2]
        value = Span(origin + found.end(), start + len(line.rstrip()))
        if not certain or operator == "!":
            self.variables[name] = None
        elif operator == "+" and name in self.variables:
            before = self.variables[name]
            if before is not None:
                before.append(value)
        elif operator != "?" or name not in self.variables:
            self.variables[name] = [value]

    def expanded(self, start: int, end: int, depth: int) -> list[Chunk]:
        """A stretch of the file with make's variables replaced."""
        text = self.source.text
        chunks: list[Chunk] = []
        at = start
        for found in _REFERENCE.finditer(text, start, end):
            if found.start() < at:
                continue
            chunks.append(_written(text, at, found.start()))
            place = Span(found.start(), found.end())
            name = found["round"] or found["curly"]
            spans = self.variables.get(name) if name else None
            if found["other"] == "$":
                chunks.append(Chunk("$", (place,)))
            elif spans is not None and depth < _DEEPEST and self._pays(spans):
                for i, span in enumerate(spans):
                    if i:
                        chunks.append(Chunk(" ", (place,)))
                    inner = self.expanded(span.start, span.end, depth + 1)
                    chunks.extend(chunk.used_at((place,)) for chunk in inner)
            else:
                place = Span(place.start, _closing(text, place, end))
                chunks.append(Chunk(text[place.start : place.end], (place,), known=False))
            at = place.end
        chunks.append(_written(text, at, end))
        return chunks

    def _pays(self, spans: list[Span]) -> bool:
        """Whether one more variable is replaced; after the first that is not, none is."""
        if self.replaced >= _BUDGET or self.inserted > _LARGEST:
            return False
        self.replaced += 1
        for start, end in spans:
            chunks = 2 + 2 * self.source.text.count("$", start, end)
            self.inserted += end - start + chunks * _CHUNK
        return self.inserted <= _LARGEST


def _logical_lines(text: str) -> Iterator[Span]:
    """Lines, with those that a backslash continues joined."""
    at = 0
    while at < len(text):
        end = at
        while True:
            end = text.find("\n", end)
            if end == -1:
                end = len(text)
                break
            if not text.endswith(("\\", "\\\r"), max(end - 2, 0), end):
                break
            end += 1
        yield Span(at, end)
        at = end + 1


def _closing(text: str, place: Span, end: int) -> int:
    """Where a call of a make function ends: ``$(shell nproc)``."""
    opening = text[place.start + 1 : place.start + 2]
    closing = {"(": ")", "{": "}"}.get(opening)
    if closing is None:
        return place.end
    depth = 0
    for at in range(place.start + 1, end):
        if text[at] == opening:
            depth += 1
        elif text[at] == closing:
            depth -= 1
            if not depth:
                return at + 1
    return end


def _written(text: str, start: int, end: int) -> Chunk:
    return Chunk(text[start:end], (Span(start, end),), True)
