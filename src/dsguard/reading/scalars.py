"""Single values: strings, numbers, ``true``, ``false``, ``null`` and strings without quotes.

The behaviour is that of ``_scan_once`` and ``scantfnns`` in hjson 3.1.0 (decoder.py).
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from dsguard.model.digits import MOST_DIGITS
from dsguard.model.source import Location, Source, Span
from dsguard.model.tree import DeviationKind, Scalar
from dsguard.reading.errors import HjsonCrashError, HjsonSyntaxError
from dsguard.reading.lexis import end_of_line
from dsguard.reading.strings import MultilineReader, QuotedString, read_quoted

if TYPE_CHECKING:
    from dsguard.reading.strict import Deviations

# A word is a literal or a number only where one of these follows; otherwise it is the
# beginning of a string that runs to the end of the line.
_TERMINATOR = r"(?=[\r\n,}\]#]|/[/*]|\Z)"
_LITERAL = re.compile(rf"(true|false|null)([^\S\r\n]*){_TERMINATOR}")
# \d on purpose: hjson takes the decimal digits of every script.
_NUMBER = re.compile(
    rf"(-?(?:0|[1-9]\d*)((?:\.\d+)?(?:[eE][-+]?\d+)?))[\t ]*{_TERMINATOR}",
)
_LITERAL_VALUES = {"true": True, "false": False, "null": None}
_WHOLE_FLOAT_LIMIT = 1e10  # smaller floats without a fraction become int


class ScalarReader:
    """Reads the single values of one text and tells ``deviations`` what JSON thinks of them."""

    def __init__(self, source: Source, deviations: Deviations) -> None:
        self._source = source
        self._text = source.text
        self._deviations = deviations

    def read(self, at: int) -> tuple[Scalar, int]:
        """Read the value at ``at`` and say where reading goes on.

        There is a character at ``at``, and it begins no white space, comment, object or array.

        Raises:
            HjsonSyntaxError: no value starts here, or a string is malformed.
            HjsonCrashError: hjson fails by accident.
        """
        first = self._text[at]
        if first == '"' or first == "'":
            return self._string(at)
        if first in "tfn" and (literal := _LITERAL.match(self._text, at)):
            return self._literal(literal)
        if first in "-0123456789" and (number := _NUMBER.match(self._text, at)):
            return self._number(number)
        return self._bare_string(at)

    def quoted(self, at: int) -> QuotedString:
        """Read a string in single or double quotes, as a key or a value.

        Raises:
            HjsonSyntaxError: the string is malformed.
            HjsonCrashError: hjson fails by accident.
        """
        string = read_quoted(self._source, at)
        if self._text[at] == "'":
            self._deviations.stop(DeviationKind.SINGLE_QUOTES, Span(at, string.end))
        for span in string.odd_escapes:
            self._deviations.stop(DeviationKind.ESCAPE, span)
        return string

    @cached_property
    def _multiline(self) -> MultilineReader:
        return MultilineReader(self._source)

    def _string(self, at: int) -> tuple[Scalar, int]:
        if self._text.startswith("'''", at):
            string = self._multiline.read(at)
            self._deviations.stop(DeviationKind.MULTILINE_STRING, Span(at, string.end))
        else:
            string = self.quoted(at)
        return Scalar(Span(at, string.end), string.value), string.end

    def _literal(self, found: re.Match[str]) -> tuple[Scalar, int]:
        word, blank = found.groups()
        if blank.strip(" \t"):
            self._deviations.stop(
                DeviationKind.OTHER, Span(*found.span(2)), "white space that JSON does not have"
            )
        return Scalar(Span(*found.span(1)), _LITERAL_VALUES[word]), found.end()

    def _number(self, found: re.Match[str]) -> tuple[Scalar, int]:
        digits, fraction_or_exponent = found.groups()
        span = Span(*found.span(1))
        value: int | float
        try:
            if fraction_or_exponent:
                value = float(digits)
                whole = int(value)
                if whole == value and abs(value) < _WHOLE_FLOAT_LIMIT:
                    value = whole
            elif len(digits.lstrip("-")) > MOST_DIGITS:
                raise ValueError(digits)
            else:
                value = int(digits)
        except (OverflowError, ValueError):
            raise HjsonCrashError(
                "the number is too large for hjson to read", Location(self._source, span)
            ) from None
        if fraction_or_exponent or not digits.isascii():
            self._deviations.number(span, digits, value)
        return Scalar(span, value), found.end()

    def _bare_string(self, at: int) -> tuple[Scalar, int]:
        if self._text[at] in "}],:":
            raise HjsonSyntaxError(
                f"`{self._text[at]}` stands where a value was expected",
                Location(self._source, Span(at, at + 1)),
            )
        end = end_of_line(self._text, at)
        raw = self._text[at:end]
        # hjson takes white space of every kind off the string, and knows four kinds around a
        # value: what is put in place of this one has to replace the others, too.
        span = Span(at, at + len(raw.rstrip(" \t\r\n")))
        self._deviations.bare_string(span, raw)
        return Scalar(span, raw.strip(), bare=True), end
