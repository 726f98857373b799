"""Lines of styled text, which only a coloured output draws with Rich.

Most reports go without colour into a pipe, a file or a log, and a check is over before Rich is
imported.
"""

from __future__ import annotations


class Line:
    """Pieces of text with a style each, in Rich's names (``bold red``); plain where empty."""

    def __init__(self, text: str = "", style: str = "") -> None:
        self.pieces: list[tuple[str, str]] = [(text, style)] if text else []

    @classmethod
    def assemble(cls, *parts: str | tuple[str, str] | Line) -> Line:
        """One line of several parts."""
        line = cls()
        for part in parts:
            if isinstance(part, Line):
                line.pieces += part.pieces
            elif isinstance(part, str):
                line.append(part)
            else:
                line.append(*part)
        return line

    @property
    def plain(self) -> str:
        """The text without its styles."""
        return "".join(text for text, _ in self.pieces)

    def __len__(self) -> int:
        """How many code points the line has."""
        return sum(len(text) for text, _ in self.pieces)

    def append(self, text: str, style: str = "") -> None:
        """Add a piece at the end."""
        if text:
            self.pieces.append((text, style))

    def cut(self, start: int, end: int | None = None) -> Line:
        """The code points from ``start`` to ``end``, with their styles."""
        line, at = Line(), 0
        stop = len(self) if end is None else end
        for text, style in self.pieces:
            line.append(text[max(start - at, 0) : max(stop - at, 0)], style)
            at += len(text)
        return line

    def trimmed(self) -> Line:
        """The line without white space at its end."""
        return self.cut(0, len(self.plain.rstrip()))


def cells(text: str) -> int:
    """How many cells of a terminal a text takes; East Asian wide characters take two."""
    if text.replace("…", "").isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
