"""The page of a rule, as ``dsguard explain`` shows it."""

from __future__ import annotations

from rich.markdown import Markdown

from dsguard.render.characters import visible
from dsguard.render.paint import console, written

_READABLE = 96
"""Prose is not set wider than this, however wide the terminal."""


def render_page(markdown: str, *, color: bool, unicode: bool, columns: int | None = None) -> str:
    """A Markdown page for a terminal; the Markdown itself where the stream is none."""
    if columns is None:
        return "\n".join(visible(line, unicode=unicode) for line in markdown.splitlines()) + "\n"
    out = console(color=color, width=min(columns, _READABLE))
    out.print(Markdown(markdown))
    return "".join(
        visible(line.rstrip(), unicode=unicode) + "\n" if not color else line.rstrip() + "\n"
        for line in written(out).splitlines()
    )
