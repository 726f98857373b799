"""From a text to a syntax tree, and from its nodes back to places in the text."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from bisect import bisect_left
from itertools import accumulate

from dsguard.model.source import Location, Source, Span

_BOM = "\ufeff"

# Python's parser joins a dotted name part by part and keeps every beginning of it.
_IMPORT = re.compile(r"\b(?:import|from)\b(?:[^\\\r\n]|\\(?:\r\n|\r|\n)?)*")
_DOTTED = re.compile(r"\w+(?:[\s\\]*\.[\s\\]*\w+)*")
_MOST_KEPT = 20_000_000


class UnreadableTextError(Exception):
    """The text is no Python that this interpreter can parse; the message says why."""


def tree_of(text: str) -> ast.Module:
    """``ast.parse``, but for a text that takes it memory without end.

    Raises:
        UnreadableTextError: it imports a name of thousands of parts.
        SyntaxError, ValueError, RecursionError, MemoryError: as ``ast.parse`` does.
    """
    kept = 0
    for statement in _IMPORT.finditer(text):
        for name in _DOTTED.finditer(statement[0]):
            kept += name[0].count(".") * len(name[0])
            if kept > _MOST_KEPT:
                raise UnreadableTextError("it imports names of too many parts")
    return ast.parse(text)


def parse(source: Source) -> ast.Module:
    """The syntax tree of a script.

    Raises:
        UnreadableTextError: the text is no Python, newer than this Python, or nested too deeply.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tree_of(source.text.removeprefix(_BOM))
    except SyntaxError as error:
        line = f" in line {error.lineno}" if error.lineno else ""
        release = f"{sys.version_info.major}.{sys.version_info.minor}"
        reason = f"it is no Python {release}: {error.msg}{line}"
        raise UnreadableTextError(reason) from None
    except (RecursionError, MemoryError):
        raise UnreadableTextError("its code is nested too deeply") from None
    except ValueError as error:  # a NUL (Python below 3.12) or a lone surrogate
        raise UnreadableTextError(f"it is no Python: {error}") from None


class Places:
    """Turns the lines and UTF-8 columns of syntax nodes into spans of the source.

    Python ends lines at a lone carriage return too, which :class:`Source` does not.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        first = len(_BOM) if source.text.startswith(_BOM) else 0
        self._starts = [first, *(m.end() for m in re.finditer(r"\r\n|\r|\n", source.text))]
        self._columns: dict[int, list[int] | None] = {}

    def span(self, node: ast.AST) -> Span:
        """Where a node stands."""
        start_line, start_column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        start = self._offset(start_line, start_column)
        end_line, end_column = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", 0)
        return Span(start, self._offset(end_line, end_column) if end_line else start)

    def locate(self, node: ast.AST) -> Location:
        """Where a node stands, as the model says it."""
        return self.source.locate(self.span(node))

    def text(self, node: ast.AST) -> str:
        """The text of a node."""
        return self.source.slice(self.span(node))

    def excerpt(self, node: ast.AST, limit: int = 50) -> str:
        """The text of a node on one line, cut where it is long."""
        start, end = self.span(node)
        text = " ".join(self.source.text[start : min(end, start + 4 * limit)].split())
        return text if len(text) <= limit and end - start <= 4 * limit else text[:limit] + "…"

    def _offset(self, line: int, column: int) -> int:
        if line > len(self._starts):
            return len(self.source.text)
        start = self._starts[line - 1]
        if line not in self._columns:
            end = self._starts[line] if line < len(self._starts) else len(self.source.text)
            text = self.source.text[start:end]
            widths = None if text.isascii() else [len(c.encode()) for c in text]
            self._columns[line] = widths and [0, *accumulate(widths)]
        columns = self._columns[line]
        return start + (column if columns is None else bisect_left(columns, column))
