"""Pictures of source lines with carets under them.

All columns are terminal cells: a tab takes four, an East Asian wide character two, an
escaped control character as many as its escape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from dsguard.render.characters import ellipsis, visible
from dsguard.render.line import Line, cells
from dsguard.render.paint import REASON

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dsguard.model.source import Source, Span

GAP = "..."
"""The gutter of a row that stands for lines left out."""

_TAB = "    "


class Mark(NamedTuple):
    """What to point at: carets in ``style`` for the primary mark, dashes for a reason."""

    span: Span
    label: str = ""
    primary: bool = False
    style: str = REASON


class Row(NamedTuple):
    """One row of a picture. ``gutter`` is a line number, empty, or :data:`GAP`."""

    gutter: str
    body: Line


class _Stroke(Struct, frozen=True):
    """A mark on one line, as code point indices into that line."""

    start: int
    end: int
    mark: Mark


def draw(source: Source, marks: Iterable[Mark], *, unicode: bool, width: int) -> list[Row]:
    """The lines that marks start on, each followed by its carets and labels.

    ``width`` is the room for the text of a line; a longer line is cut around its marks. A
    label is shown as given: the caller has made it safe.
    """
    by_line: dict[int, list[Mark]] = {}
    for mark in _merged(marks):
        by_line.setdefault(source.position(mark.span.start).line, []).append(mark)
    rows: list[Row] = []
    previous = None
    for number in sorted(by_line):
        if previous is not None and number == previous + 2:
            rows.extend(_draw_line(source, number - 1, [], unicode, width))
        elif previous is not None and number > previous + 1:
            rows.append(Row(GAP, Line()))
        rows.extend(_draw_line(source, number, by_line[number], unicode, width))
        previous = number
    return rows


def _merged(marks: Iterable[Mark]) -> list[Mark]:
    """Marks of one span become one mark with all labels."""
    merged: dict[Span, Mark] = {}
    for mark in marks:
        first = merged.setdefault(mark.span, mark)
        if first is not mark:
            label = ", ".join(filter(None, (first.label, mark.label)))
            strong = first if first.primary else mark
            merged[mark.span] = strong._replace(label=label)
    return list(merged.values())


def _draw_line(
    source: Source, number: int, marks: Sequence[Mark], unicode: bool, width: int
) -> list[Row]:
    text = source.line(number)
    strokes: Sequence[_Stroke] = sorted(
        (_stroke(source, number, text, mark) for mark in marks), key=lambda s: (s.start, s.end)
    )
    numbered = source.is_file or "\n" in source.text
    strip, strokes = _fit(text, strokes, unicode, width)
    line = Row(str(number) if numbered else "", Line(strip.shown.rstrip()))
    return [line, *(Row("", body) for body in _underline(strip, strokes, width))]


def _stroke(source: Source, number: int, text: str, mark: Mark) -> _Stroke:
    start, end = mark.span
    # A mark on a line end (the CR of a CRLF too) points just behind the last character.
    at = min(source.position(start).column - 1, len(text))
    last_line = source.position(max(end - 1, start)).line
    if last_line > number:
        label = f"{mark.label} (to line {last_line})" if mark.label else f"to line {last_line}"
        return _Stroke(at, max(len(text), at + 1), mark._replace(label=label))
    return _Stroke(at, max(min(at + end - start, len(text)), at + 1), mark)


class _Strip:
    """The stretches of a line that are shown, and where its code points stand then."""

    def __init__(self, text: str, stretches: Sequence[tuple[int, int]], unicode: bool) -> None:
        self._text = text
        self._stretches = stretches
        self._unicode = unicode
        self.shown = self._show(len(text)) + self._gap(stretches[-1][1], len(text))

    def cell(self, index: int) -> int:
        """How many cells stand before a code point; one behind the end of the line counts too."""
        return cells(self._show(index)) + max(0, index - len(self._text))

    def _show(self, until: int) -> str:
        shown, last = "", 0
        for start, end in self._stretches:
            shown += self._gap(last, start)
            shown += self._piece(start, min(end, until))
            if until <= end:
                break
            last = end
        return shown

    def _piece(self, start: int, end: int) -> str:
        return _TAB.join(
            visible(part, unicode=self._unicode) for part in self._text[start:end].split("\t")
        )

    def _gap(self, start: int, end: int) -> str:
        return ellipsis(unicode=self._unicode) if end > start else ""


def _fit(
    text: str, strokes: Sequence[_Stroke], unicode: bool, width: int
) -> tuple[_Strip, Sequence[_Stroke]]:
    """The line with as much around the strokes as fits, and the strokes as they are then."""

    def strip(strokes: Sequence[_Stroke], context: int) -> _Strip:
        wanted = [_around(text, s, context) for s in strokes] or [(0, context)]
        return _Strip(text, _stretches(wanted, len(text)), unicode)

    def fits(strip: _Strip) -> bool:
        return cells(strip.shown) <= width

    widest = strip(strokes, width)
    if fits(widest):
        return widest, strokes
    if strokes and not fits(strip(strokes, 0)):
        longest = max(1, width // len(strokes) - 2 * len(ellipsis(unicode=unicode)))
        strokes = [replace(s, end=min(s.end, s.start + longest)) for s in strokes]
    context, too_much = 0, width
    while too_much - context > 1:
        middle = (context + too_much) // 2
        if fits(strip(strokes, middle)):
            context = middle
        else:
            too_much = middle
    return strip(strokes, context), strokes


def _around(text: str, stroke: _Stroke, context: int) -> tuple[int, int]:
    """A stroke with at most so many characters on each side, in whole words if there are any."""
    start, end = max(stroke.start - context, 0), min(stroke.end + context, len(text))
    if start > 0:
        start = max(start, text.find(" ", start, stroke.start))
    if end < len(text):
        space = text.rfind(" ", stroke.end, end)
        end = end if space == -1 else space + 1
    return start, end


def _stretches(wanted: Iterable[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """Stretches within the line, joined where they touch or leave out a single character."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(wanted):
        start, end = max(start, 0), min(end, length)
        start = 0 if start <= 1 else start
        end = length if end >= length - 1 else end
        if joined and start <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


class _Label(Struct, frozen=True):
    column: int
    text: str
    style: str


def _underline(strip: _Strip, strokes: Sequence[_Stroke], width: int) -> list[Line]:
    """The row of carets, with the last label behind it and the others below."""
    if not strokes:
        return []
    row = Line()
    waiting: list[_Label] = []
    # Longer strokes first: a shorter one inside stays visible. The primary mark comes last.
    for stroke in sorted(strokes, key=lambda s: (s.mark.primary, s.start - s.end)):
        column = strip.cell(stroke.start)
        length = max(1, strip.cell(stroke.end) - column)
        row = _over(row, column, ("^" if stroke.mark.primary else "-") * length, stroke.mark.style)
    for stroke in strokes:
        if stroke.mark.label:
            waiting.append(_Label(strip.cell(stroke.start), stroke.mark.label, stroke.mark.style))
    rows = [row]
    last = strokes[-1]
    if (
        last.mark.label
        and all(stroke.end <= last.start for stroke in strokes[:-1])
        and len(row) + 1 + cells(last.mark.label) <= width
    ):
        row.append(" ")
        row.append(last.mark.label, last.mark.style)
        waiting.pop()
    if waiting:
        rows.append(_connectors(waiting))
    while waiting:
        label = waiting.pop()
        column = max(0, min(label.column, width - cells(label.text)))
        below = _connectors([other for other in waiting if other.column < column])
        rows.append(_over(below, column, label.text, label.style))
    return rows


def _connectors(labels: Sequence[_Label]) -> Line:
    row = Line()
    for label in labels:
        row = _over(row, label.column, "|", label.style)
    return row


def _over(row: Line, column: int, text: str, style: str) -> Line:
    """The row with text written at a column, over what stands there."""
    gap = " " * (column - len(row))
    return Line.assemble(row.cut(0, column), gap, (text, style), row.cut(column + len(text)))
