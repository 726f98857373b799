"""Jupyter notebooks as scripts: their code cells, one after another.

A place in a notebook is a place in one cell, shown as ``train.ipynb:cell 3:2:5`` (cells are
counted from 1, as the notebook's interface does, text cells included). Lines for the shell and
for IPython (``!pip``, ``%cd``, ``%%bash``) are blanked out, so that offsets stay.

Source: the notebook format 4, https://nbformat.readthedocs.io, "Code cells".
"""

from __future__ import annotations

import json
import re
import warnings
from bisect import bisect_right
from typing import Any

from dsguard.model.source import Location, Source, Span
from dsguard.script.syntax import UnreadableTextError, tree_of

_LINE_MAGIC = re.compile(r"^([ \t]*)([!%?])(.*)$", re.MULTILINE)
_HELP = re.compile(r"^[ \t]*[\w.]+\?{1,2}[ \t]*$", re.MULTILINE)
_KEEPS_CODE = ("%%time", "%%timeit", "%%capture", "%%prun")


class NotANotebookError(Exception):
    """The text is no notebook; the message says why."""


class Notebook(Source, frozen=True, eq=False, dict=True):
    """The code of a notebook as one text, and the cells that it is made of.

    ``cells`` are sources of their own, each with the offset at which it starts in the text.
    """

    cells: tuple[tuple[int, Source], ...] = ()

    def locate(self, span: Span) -> Location:
        """A span of the whole text as a place in the cell where it starts."""
        starts = [start for start, _ in self.cells]
        at = bisect_right(starts, span.start) - 1
        if at < 0:
            return Location(self, span)
        start, cell = self.cells[at]
        end = len(cell.text)
        return Location(cell, Span(min(span.start - start, end), min(span.end - start, end)))


def read_notebook(text: str, name: str) -> Notebook:
    """The code cells of a notebook.

    A cell that is no Python is left out, as if it were empty: the others may still run.

    Raises:
        NotANotebookError: the text is no notebook of format 4.
    """
    parts: list[str] = []
    cells: list[tuple[int, Source]] = []
    offset = 0
    for number, cell in enumerate(_cells(text), start=1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        code = _joined(cell.get("source"))
        cells.append((offset, Source(f"{name}:cell {number}", code)))
        parts.append(_python(code) + "\n")
        offset += len(parts[-1])
    return Notebook(name, "".join(parts), cells=tuple(cells))


def _cells(text: str) -> list[Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise NotANotebookError("it is no JSON, as a notebook is") from None
    cells = value.get("cells") if isinstance(value, dict) else None
    if not isinstance(cells, list):
        raise NotANotebookError("it has no cells of the notebook format 4")
    return cells


def _joined(source: Any) -> str:
    if isinstance(source, list):
        return "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else ""


def _python(code: str) -> str:
    """The code with everything that is no Python turned into comments of the same length."""
    first = code.lstrip().partition("\n")[0]
    if first.startswith("%%") and not first.startswith(_KEEPS_CODE):
        return _commented(code)
    code = _HELP.sub(lambda m: "#" + m[0][1:], _LINE_MAGIC.sub(_without_magic, code))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree_of(code)
    except (UnreadableTextError, SyntaxError, ValueError, RecursionError, MemoryError):
        return _commented(code)
    return code


def _without_magic(match: re.Match[str]) -> str:
    """``pass`` where it fits, so that an ``if`` with nothing but a magic stays whole."""
    indent, mark, rest = match.groups()
    words = mark + rest
    return indent + ("pass" + " " * (len(words) - 4) if len(words) >= 4 else "#" * len(words))


def _commented(code: str) -> str:
    return "\n".join("#" + line[1:] if line else line for line in code.split("\n"))
