"""Strings in quotes: ``"…"``, ``'…'`` and the multi-line ``'''…'''``.

The behaviour is that of ``scanstring`` and ``mlscanstring`` in hjson 3.1.0 (decoder.py).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache

from msgspec import Struct

from dsguard.model.source import Location, Source, Span
from dsguard.reading.errors import HjsonCrashError, HjsonSyntaxError
from dsguard.reading.lexis import LINE_END, pass_over

_ESCAPES = dict(zip("\"'\\/bfnrt", "\"'\\/\b\f\n\r\t", strict=True))
_JSON_ESCAPES = r'\\["\\/bfnrt]|(?:\\u[0-9A-Fa-f]{4}){1,2}'
# A carriage return and a line feed are one character once the file is opened as text.
_FOUR_CHARACTERS = r"(?s)(?:\r\n|.){4}"


class QuotedString(Struct, frozen=True):
    """A string read: what it holds, where it ends, and the escapes that JSON does not have."""

    value: str
    end: int
    odd_escapes: tuple[Span, ...] = ()


@cache
def _plain(quote: str) -> re.Pattern[str]:
    """A stretch of a string without its end, escapes and control characters."""
    return re.compile(rf"[^{quote}\\\x00-\x1f]*")


def read_quoted(source: Source, start: int) -> QuotedString:
    """Read the string whose opening quote, ``"`` or ``'``, stands at ``start``.

    Raises:
        HjsonSyntaxError: the string has no end, a control character or an unknown escape.
        HjsonCrashError: an escape stands for no character.
    """
    text = source.text
    quote = text[start]
    plain = _plain(quote)
    chunks: list[str] = []
    odd: list[Span] = []
    at = start + 1
    while True:
        end = pass_over(plain, text, at)
        chunks.append(text[at:end])
        stop = text[end : end + 1]
        if stop == quote:
            return QuotedString("".join(chunks), end + 1, tuple(odd))
        if stop == "\\" and end + 1 < len(text):
            character, at = _read_escape(source, end)
            chunks.append(character)
            if not re.compile(_JSON_ESCAPES).fullmatch(text, end, at):
                odd.append(Span(end, at))
        elif stop in ("", "\\", "\n", "\r"):
            raise HjsonSyntaxError(
                f"the string has no closing {quote} on its line", Location(source, Span(start, end))
            )
        else:
            raise HjsonSyntaxError(
                f"the control character {stop!r} stands inside a string",
                Location(source, Span(end, end + 1)),
                help=f"write it as the escape \\u{ord(stop):04x}",
            )


def _read_escape(source: Source, start: int) -> tuple[str, int]:
    r"""The character that the backslash at ``start`` begins, and where its escape ends.

    The digits of ``\uXXXX`` are whatever ``int(…, 16)`` takes, which is more than JSON allows.
    """
    text = source.text
    letter = text[start + 1]
    if letter in _ESCAPES:
        return _ESCAPES[letter], start + 2
    if letter != "u":
        raise HjsonSyntaxError(
            f"the string has the unknown escape \\{letter if letter.isprintable() else ''}",
            Location(source, Span(start, start + 2)),
            help="write a backslash in a string as two backslashes",
        )
    code, end = _code_unit(source, start)
    if code & 0xFC00 == 0xD800 and text.startswith("\\u", end):
        low, low_end = _code_unit(source, end)
        if low & 0xFC00 == 0xDC00:
            return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)), low_end
    if code < 0:
        raise HjsonCrashError(
            "the \\u escape is a negative number", Location(source, Span(start, end))
        )
    return chr(code), end


def _code_unit(source: Source, start: int) -> tuple[int, int]:
    digits = re.compile(_FOUR_CHARACTERS).match(source.text, start + 2)
    if digits and digits[0][1] not in "xX":
        try:
            return int(digits[0], 16), digits.end()
        except ValueError:
            pass
    raise HjsonSyntaxError(
        "the \\u escape does not have four hexadecimal digits",
        Location(source, Span(start, start + 2)),
    )


class MultilineReader:
    """Reads the ``'''…'''`` strings of one text.

    hjson takes from each line as much white space as there are characters left of the
    opening quotes, whatever they are. On the first line of a file its count runs on
    backwards from the end of the file to the last line feed. Both are imitated.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._line_starts = [found.end() for found in re.finditer(LINE_END, source.text)]

    def read(self, start: int) -> QuotedString:
        """Read the string whose three opening quotes stand at ``start``.

        Raises:
            HjsonSyntaxError: the string has no end.
            HjsonCrashError: hjson runs off the text, which ends in white space or has no line feed.
        """
        text = self._source.text
        indent = self._indent(start)
        close = text.find("'''", start + 3)
        raw = text[start + 3 :] if close == -1 else text[start + 3 : close]
        body = re.sub(LINE_END, "\n", raw).lstrip(" \t")
        if close == -1:
            error = HjsonSyntaxError if body else HjsonCrashError
            raise error(
                "the multi-line string has no closing '''",
                Location(self._source, Span(start, start + 3)),
            )
        first, *others = body.split("\n")
        lines = [first, *(_without_indent(line, indent) for line in others)]
        value = "\n".join(lines).removesuffix("\n")
        if body.startswith("\n"):
            value = value.removeprefix("\n")
        return QuotedString(value, close + 3)

    def _indent(self, start: int) -> int:
        if not self._line_starts:
            raise HjsonCrashError(
                "a multi-line string stands in a file without a line feed, where hjson fails",
                Location(self._source, Span(start, start + 3)),
                help="end the file with a line feed",
            )
        line = bisect_right(self._line_starts, start)
        if line:
            return start - self._line_starts[line - 1]
        return start + len(self._source.text) - self._line_starts[-1]


def _without_indent(line: str, indent: int) -> str:
    blank = len(line) - len(line.lstrip(" \t"))
    return line[min(blank, indent) :]
