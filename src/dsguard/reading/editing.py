"""Edits that rename, remove and move members of a document, and touch nothing else.

Each function returns edits of the text, never a new text: comments, order, indentation and line
ends outside the edits stay as they are. None says that the member cannot be edited without
touching more, as where a comment stands inside it.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from itertools import pairwise
from typing import NamedTuple

from dsguard.model.finding import Edit
from dsguard.model.source import Span
from dsguard.model.tree import Document, Member, Node, Object, Scalar
from dsguard.reading.lexis import BLANK, pass_over

_INLINE = " \t"


def rename_member(document: Document, pointer: str, name: str) -> Edit | None:
    """Write another key in front of the same value."""
    member = document.member(pointer)
    parent = document.get(pointer.rpartition("/")[0])
    if member is None or not isinstance(parent, Object) or not _in_braces(document, parent):
        return None
    return Edit(*member.key_span, json.dumps(name, ensure_ascii=False))


def remove_member(document: Document, parent: Object, member: Member) -> tuple[Edit, ...] | None:
    """Take a member out with the comma that goes with it, and its line where that is left blank."""
    if not _in_braces(document, parent):
        return None
    at = bisect_left(parent.members, member.key_span, key=lambda one: one.key_span)
    before = parent.members[at - 1] if at else None
    if _holds_bare(member.node) or (before is not None and _holds_bare(before.node)):
        return None  # a string without quotes takes commas and brackets with it
    text, span = document.source.text, member.span
    comma = _comma(document, span.end)
    end = span.end if comma is None else comma + 1
    if _comments(document, Span(span.start, end)):
        return None
    if comma is not None or before is None:
        return (_cut(text, span.start, end),)
    start = _comma(document, before.node.span.end)
    if start is None:
        return (_cut(text, span.start, end),)
    if not _comments(document, Span(start, span.start)):
        return (Edit(start, span.end, ""),)
    return (Edit(start, start + 1, ""), _cut(text, span.start, end))


def move_member(
    document: Document, parent: Object, member: Member, home: Object
) -> tuple[Edit, ...] | None:
    """Take a member out of ``parent`` and write it as the last one of ``home``."""
    removal = remove_member(document, parent, member)
    if removal is None:
        return None
    place = _last_place(document, home)
    if place is None:
        return None
    written = _reindented(document, member, place.indent)
    edits = [*removal, *place.edits(written)]
    edits.sort(key=lambda edit: edit.start)
    if any(one.end > other.start for one, other in pairwise(edits)):
        return None
    return tuple(edits)


class _Place(NamedTuple):
    """Where a new last member goes: ``comma`` is inserted there first, None where one stands."""

    comma: int | None
    at: int
    separator: str
    indent: str
    trailing: str = ""

    def edits(self, written: str) -> list[Edit]:
        new = f"{self.separator}{written}{self.trailing}"
        if self.comma == self.at:
            return [Edit(self.at, self.at, f",{new}")]
        commas = [] if self.comma is None else [Edit(self.comma, self.comma, ",")]
        return [*commas, Edit(self.at, self.at, new)]


def _in_braces(document: Document, node: Object) -> bool:
    """Whether members are set apart by commas: not in YAML, nor in HJSON without outer braces."""
    return document.source.text.startswith("{", node.span.start)


def _last_place(document: Document, home: Object) -> _Place | None:
    text = document.source.text
    if not _in_braces(document, home):
        return None
    if not home.members:
        inside = text[home.span.start + 1 : home.span.end - 1]
        if inside.strip(_INLINE):
            return None
        return _Place(None, home.span.start + 1, "", "")
    last = home.members[-1]
    if _holds_bare(last.node):
        return None
    end = last.node.span.end
    comma = _comma(document, end)
    behind = end if comma is None else comma + 1
    start = text.rfind("\n", 0, last.key_span.start) + 1
    indent = text[start : last.key_span.start]
    own_line = not indent.strip(_INLINE)
    separator = _line_end(text, start) + indent if own_line else " "
    at, trailing = behind, "," if comma is not None else ""
    if own_line:
        # Behind a comment on the same line, which belongs to the member before.
        line_end = text.find("\n", behind)
        line_end = len(text) if line_end == -1 else line_end
        line_end -= text.endswith("\r", 0, line_end)
        between = Span(behind, line_end)
        if _comments(document, between):
            if any(start < line_end < end for start, end in document.comments):
                return None
            at = line_end
    indent = indent if own_line else ""
    return _Place(end if comma is None else None, at, separator, indent, trailing)


def _reindented(document: Document, member: Member, indent: str) -> str:
    """The member as written, its further lines moved with the first one."""
    text = document.source.text
    written = document.source.slice(member.span)
    start = text.rfind("\n", 0, member.span.start) + 1
    old = text[start : member.span.start]
    if old.strip(_INLINE) or not indent or "\n" not in written or "'''" in written:
        return written
    first, *others = written.split("\n")
    if not all(line.startswith(old) or not line.strip() for line in others):
        return written
    return "\n".join([first, *(indent + line.removeprefix(old) for line in others)])


def _cut(text: str, start: int, end: int) -> Edit:
    """Take a stretch out, with its whole line or lines where nothing else stands on them."""
    line = text.rfind("\n", 0, start) + 1
    blank_before = not text[line:start].strip(_INLINE)
    stop = end
    while text[stop : stop + 1] in (" ", "\t"):
        stop += 1
    if blank_before and text.startswith(("\n", "\r\n"), stop):
        return Edit(line, text.index("\n", stop) + 1, "")
    return Edit(start, stop, "")


def _comma(document: Document, at: int) -> int | None:
    """The comma behind a value, comments in between passed."""
    text = document.source.text
    while True:
        at = pass_over(BLANK, text, at)
        number = bisect_left(document.comments, Span(at, at))
        if number == len(document.comments) or document.comments[number].start != at:
            return at if text.startswith(",", at) else None
        at = document.comments[number].end


def _comments(document: Document, within: Span) -> bool:
    after = bisect_left(document.comments, Span(within.end, within.end))
    # They stand in order and apart: the last one that begins before ends last, too.
    return after > 0 and document.comments[after - 1].end > within.start


def _line_end(text: str, start: int) -> str:
    """The line end in use at the line that starts here."""
    return "\r\n" if text.endswith("\r\n", 0, start) else "\n"


def _holds_bare(node: Node) -> bool:
    """Whether a value ends as a string without quotes does."""
    return isinstance(node, Scalar) and node.bare
