"""HJSON as DeepSpeed reads it, with every key, value and comment at its place.

DeepSpeed opens a config as a text file and gives it to ``hjson.load`` (runtime/config.py). No
package keeps positions and has exactly that meaning, so dsguard has its own reader. It
accepts what hjson 3.1.0 accepts and gives the same values, down to int and float.
Duplicate keys, which DeepSpeed refuses, are kept for a rule to report; of their values the
last one counts.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from dsguard.model.source import Location, Source, Span
from dsguard.model.tree import Array, DeviationKind, Document, Member, Node, Object, Scalar
from dsguard.reading.errors import HjsonCrashError, HjsonSyntaxError
from dsguard.reading.lexis import BLANK, end_of_line, pass_over
from dsguard.reading.scalars import ScalarReader
from dsguard.reading.strict import Deviations

MAX_DEPTH = 496
"""How many objects and arrays hjson reads inside one another, at the very most.

It calls itself twice per level, so that Python's default limit of 1000 calls ends it there
(measured on Python 3.10 to 3.13 with ``hjson.load`` called from the top of a script; from
deeper calls it ends earlier).
"""

_BARE_KEY = r"[^ \t\n\r:{}\[\],]*"
# hjson also drops a UTF-8 byte order mark that was decoded as Latin-1.
_BYTE_ORDER_MARKS = ("\ufeff", "\xef\xbb\xbf")


def parse(source: Source) -> Document:
    """Read a text as ``hjson.load`` does.

    Raises:
        HjsonSyntaxError: hjson refuses the text, with its own error or by accident.
    """
    return _Reader(source).document()


class _OpenArray:
    """An array whose end has not been reached."""

    opener = "["
    closer = "]"

    def __init__(self, start: int) -> None:
        self.start = start
        self._items: list[Node] = []

    def add(self, node: Node) -> None:
        self._items.append(node)

    def close(self, end: int) -> Array:
        return Array(Span(self.start, end), tuple(self._items), [n.value for n in self._items])


class _OpenObject:
    """An object whose end has not been reached.

    ``closer`` is empty for the root object without braces: the end of the text closes it.
    """

    opener = "{"

    def __init__(self, start: int, closer: str = "}") -> None:
        self.start = start
        self.closer = closer
        self._members: list[Member] = []
        self._value: dict[str, Any] = {}
        self._key = ("", Span(start, start))

    def expect(self, key: str, span: Span) -> None:
        """The next node to be added is the value of this key."""
        self._key = (key, span)

    def add(self, node: Node) -> None:
        key, span = self._key
        self._members.append(Member(key, span, node))
        self._value[key] = node.value

    def close(self, end: int) -> Object:
        if not self.closer:
            end = self._members[-1].span.end
        return Object(Span(self.start, end), tuple(self._members), self._value)


_Open: TypeAlias = _OpenArray | _OpenObject


class _Reader:
    """Reads one text. Positions go in and come out; the reader itself only collects."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._text = source.text
        self._comments: list[Span] = []
        self._start_over(comments=0)

    def _start_over(self, comments: int) -> None:
        """Forget everything collected but the first comments."""
        del self._comments[comments:]
        self._deviations = Deviations()
        self._scalars = ScalarReader(self._source, self._deviations)
        self._swallower: Scalar | None = None

    def document(self) -> Document:
        text = self._text
        mark = next((m for m in _BYTE_ORDER_MARKS if text.startswith(m)), "")
        at = self._skip(len(mark))
        root: Node
        if at == len(text):
            if mark:
                raise HjsonSyntaxError(
                    "the file holds a byte order mark and no value",
                    self._place(0, len(mark)),
                    help="an empty file is read as {}, but not with a byte order mark",
                )
            root = Object(Span(0, 0), (), {})
            self._deviations.stop(DeviationKind.EMPTY, root.span)
        elif text[at] in "{[":
            root, end = self._read_value(at, [])
            self._expect_end(end)
        else:
            root = self._read_without_braces(at)
        if mark:
            self._deviations.stop(DeviationKind.BYTE_ORDER_MARK, Span(0, len(mark)))
        for span in self._comments:
            self._deviations.stop(DeviationKind.COMMENT, span)
        return Document(self._source, root, tuple(self._comments), self._deviations.settled(text))

    def _read_without_braces(self, at: int) -> Node:
        """A root object without braces or, failing that, a single value.

        When both fail, the error is the one about the object, as in hjson.
        """
        comments = len(self._comments)
        try:
            root = _OpenObject(at, closer="")
            node, _ = self._read_value(self._before_item(root, at), [root])
        except HjsonCrashError:
            raise
        except HjsonSyntaxError as not_an_object:
            self._start_over(comments)
            try:
                node, end = self._scalars.read(at)
                self._expect_end(end)
            except HjsonSyntaxError:
                raise not_an_object from None
        else:
            self._deviations.stop(DeviationKind.MISSING_BRACES, node.span)
        return node

    def _read_value(self, at: int, opened: list[_Open]) -> tuple[Node, int]:
        """Read the value at ``at`` and on, until the outermost of ``opened`` is closed.

        A loop with a stack of its own: nesting costs no Python calls.
        """
        node: Node
        while True:
            first = self._text[at]
            if first == "{" or first == "[":
                current: _Open = _OpenObject(at) if first == "{" else _OpenArray(at)
                opened.append(current)
                if len(opened) > MAX_DEPTH:
                    raise HjsonCrashError(
                        f"objects and arrays nest more than {MAX_DEPTH} deep, "
                        "where hjson fails with a RecursionError",
                        self._place(at, at + 1),
                    )
                at = self._skip(at + 1)
                if not self._closes(current, at):
                    at = self._before_item(current, at)
                    continue
                end = at + len(current.closer)
                node = opened.pop().close(end)
            else:
                node, end = self._scalars.read(at)
                if node.bare and str(node.value).endswith(("}", "]", "},", "],")):
                    self._swallower = node
            while opened:
                current = opened[-1]
                current.add(node)
                at = self._after_item(current, node, end)
                if not self._closes(current, at):
                    at = self._before_item(current, at)
                    break
                end = at + len(current.closer)
                node = opened.pop().close(end)
            else:
                return node, end

    def _closes(self, current: _Open, at: int) -> bool:
        return self._text[at : at + 1] == current.closer

    def _before_item(self, current: _Open, at: int) -> int:
        """Where the value of the next item starts: in an object, behind a key and colon."""
        if at == len(self._text):
            raise self._never_closed(current)
        if isinstance(current, _OpenArray):
            if self._text[at] == "}":
                raise self._wrong_closer(current, at)
            return at
        key, span, at = self._read_key(current, at)
        current.expect(key, span)
        at = self._skip(at)
        if not self._text.startswith(":", at):
            raise HjsonSyntaxError("the key is not followed by a `:`", self._place(*span))
        at = self._skip(at + 1)
        if at == len(self._text):
            raise HjsonSyntaxError("the key has no value", self._place(*span))
        return at

    def _read_key(self, current: _OpenObject, start: int) -> tuple[str, Span, int]:
        """The key at ``start``, its span, and where reading goes on."""
        text = self._text
        if text[start] == '"' or text[start] == "'":
            string = self._scalars.quoted(start)
            return string.value, Span(start, string.end), string.end
        end = pass_over(re.compile(_BARE_KEY), text, start)
        span = Span(start, end)
        if start == end:
            raise self._no_key(current, start)
        at = pass_over(BLANK, text, end)
        stop = text[at : at + 1]
        if stop == ":":
            self._deviations.stop(DeviationKind.UNQUOTED_KEY, span)
            key = text[start:end]
            return (key.rstrip() if at > end else key), span, at
        if stop and stop not in "{}[],":
            raise HjsonSyntaxError(
                "a key without quotes holds white space, or its `:` is missing",
                self._place(*span),
            )
        raise HjsonSyntaxError("the key is not followed by a `:`", self._place(*span))

    def _after_item(self, current: _Open, node: Node, end: int) -> int:
        """Pass the comma behind an item, if there is one; where the next thing starts."""
        comma = None
        if isinstance(node, Scalar) and node.bare and str(node.value).endswith(","):
            comma = node.span.end - 1  # part of the string here, a comma for a JSON reader
        at = self._skip(end)
        if self._text.startswith(",", at):
            if comma is not None:
                self._deviations.stop(DeviationKind.OTHER, Span(at, at + 1), "a second comma")
            comma = at
            at = self._skip(at + 1)
        closes = self._closes(current, at)
        if closes and comma is not None:
            self._deviations.stop(DeviationKind.TRAILING_COMMA, Span(comma, comma + 1))
        elif not closes and comma is None:
            self._deviations.stop(DeviationKind.MISSING_COMMA, Span(node.span.end, node.span.end))
        return at

    def _skip(self, at: int) -> int:
        """Pass white space and comments."""
        text = self._text
        while True:
            at = pass_over(BLANK, text, at)
            if text[at : at + 1] not in "#/":
                return at
            if text.startswith(("#", "//"), at):
                end = end_of_line(text, at)
            elif text.startswith("/*", at):
                close = text.find("*/", at + 2)
                if close == -1:
                    raise HjsonCrashError("the comment has no closing */", self._place(at, at + 2))
                end = close + 2
            else:
                return at
            self._comments.append(Span(at, end))
            at = end

    def _expect_end(self, at: int) -> None:
        at = self._skip(at)
        if at != len(self._text):
            raise HjsonSyntaxError(
                "text follows after the end of the document",
                self._place(at, end_of_line(self._text, at)),
                help="remove it, or look before it for a bracket that closes too early",
            )

    def _never_closed(self, current: _Open) -> HjsonSyntaxError:
        help = ""
        if self._swallower is not None:
            line, _ = self._source.position(self._swallower.span.start)
            help = (
                f"the string without quotes on line {line} runs to the end of the line and takes "
                "a closing bracket with it; put it in quotes"
            )
        return HjsonSyntaxError(
            f"`{current.opener}` is never closed",
            self._place(current.start, current.start + 1),
            help,
        )

    def _no_key(self, current: _OpenObject, at: int) -> HjsonSyntaxError:
        found = self._text[at]
        if found == ":":
            return HjsonSyntaxError("there is no key before the `:`", self._place(at, at + 1))
        if found == "]" and current.closer:
            return self._wrong_closer(current, at)
        return HjsonSyntaxError(
            f"`{found}` stands where a key was expected", self._place(at, at + 1)
        )

    def _wrong_closer(self, current: _Open, at: int) -> HjsonSyntaxError:
        line, column = self._source.position(current.start)
        opener = f"the `{current.opener}` of line {line}, column {column}"
        return HjsonSyntaxError(
            f"`{self._text[at]}` does not close {opener}", self._place(at, at + 1)
        )

    def _place(self, start: int, end: int) -> Location:
        return Location(self._source, Span(start, end))
