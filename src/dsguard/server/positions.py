"""Between offsets in a source, in code points, and positions as a client counts them.

A client counts lines from 0 and columns in UTF-16 units, unless it agreed on another encoding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol.types import Position, Range

if TYPE_CHECKING:
    from pygls.workspace import PositionCodec

    from dsguard.model.source import Source, Span


def to_position(source: Source, offset: int, codec: PositionCodec) -> Position:
    """The position of a code point; the end of the text is a valid place."""
    line, column = source.position(offset)
    before = source.text[offset - column + 1 : offset]
    return Position(line - 1, codec.client_num_units(before))


def to_range(source: Source, span: Span, codec: PositionCodec) -> Range:
    """The range of a span."""
    return Range(*(to_position(source, offset, codec) for offset in span))


def to_offset(source: Source, position: Position, codec: PositionCodec) -> int:
    """The offset of a position; one behind the end of its line means that end."""
    if position.line >= source.position(len(source.text)).line:
        return len(source.text)
    line = source.line(position.line + 1)
    units = column = 0
    while column < len(line) and units < position.character:
        units += codec.client_num_units(line[column])
        column += 1
    return source.start_of(position.line + 1) + column
