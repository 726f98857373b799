"""Directives in the comments of a text, whatever its language."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dsguard.model.directive import Directive, NamedRule
from dsguard.model.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterable

_DIRECTIVE = re.compile(
    r"(?:#|//|/\*)\s*(?P<all>dsguard:\s*(?P<word>\w+)"
    r"(?P<bracket>\s*\[(?P<names>[^\]\r\n]*)(?P<end>\])?)?"
    r"(?P<reason>[^\r\n]*))"
)
_NAME = re.compile(r"[^,\s]+")
_MORE = re.compile(r"\S")
_WORD = "ignore"


def directives_in(source: Source, comments: Iterable[Span]) -> list[Directive]:
    """The directives of a text whose comments are known, in the order of the text.

    One that stands behind something on its line means that line; one that stands alone means the
    next line that is more than a comment.
    """
    text = source.text
    found: list[Directive] = []
    following: dict[int, int] = {}
    # From the last one to the first: what follows a comment also follows the one before it.
    for comment in sorted(set(comments), reverse=True):
        more = _MORE.search(text, max(comment.end, comment.start + 1))
        at = more.start() if more is not None else len(text)
        at = following[comment.start] = following.get(at, at)
        directive = _directive(source, comment, at)
        if directive is not None:
            found.append(directive)
    return found[::-1]


def _directive(source: Source, comment: Span, following: int) -> Directive | None:
    match = _DIRECTIVE.search(source.text, *comment)
    if match is None or (match["word"] != _WORD and match["bracket"] is None):
        return None  # a sentence that begins with the name of dsguard
    names = [
        NamedRule(name[0], Span(*name.span()))
        for name in (_NAME.finditer(source.text, *match.span("names")) if match["names"] else ())
    ]
    if match["word"] != _WORD:
        fault = f"there is no directive {match['word']}, only {_WORD}"
    elif match["bracket"] is not None and match["end"] is None:
        fault = "its bracket is not closed"
    elif not names:
        fault = "it names no rule"
    else:
        fault = ""
    written = match["all"].removesuffix("*/").rstrip()
    line = _line_meant(source, comment, following)
    return Directive(
        source,
        Span(match.start("all"), match.start("all") + len(written)),
        () if fault else tuple(names),
        match["reason"].removesuffix("*/").strip(),
        line,
        line,
        fault,
    )


def _line_meant(source: Source, comment: Span, following: int) -> int:
    """The line of a directive; ``following`` is where something stands that is no comment."""
    line, column = source.position(comment.start)
    if following == len(source.text) or source.line(line)[: column - 1].strip():
        return line
    return source.position(following).line
