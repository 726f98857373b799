"""Directives in the comments of a text, whatever its language."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dsguard.model.directive import Directive, NamedRule
from dsguard.model.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_DIRECTIVE = re.compile(
    r"(?:#|//|/\*)\s*(?P<all>dsguard:\s*(?P<word>\w+)"
    r"(?P<bracket>\s*\[(?P<names>[^\]\r\n]*)(?P<end>\])?)?"
    r"(?P<reason>[^\r\n]*))"
)
_NAME = re.compile(r"[^,\s]+")
_WORD = "ignore"


def directives_in(source: Source, comments: Iterable[Span]) -> list[Directive]:
    """The directives of a text whose comments are known, in the order of the text.

    One that stands behind something on its line means that line; one that stands alone means the
    next line that is more than a comment.
    """
    spans = sorted(set(comments))
    found = (_directive(source, comment, spans) for comment in spans)
    return [directive for directive in found if directive is not None]


def _directive(source: Source, comment: Span, comments: Sequence[Span]) -> Directive | None:
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
    line = _line_meant(source, comment, comments)
    return Directive(
        source,
        Span(match.start("all"), match.start("all") + len(written)),
        () if fault else tuple(names),
        match["reason"].removesuffix("*/").strip(),
        line,
        line,
        fault,
    )


def _line_meant(source: Source, comment: Span, comments: Sequence[Span]) -> int:
    line, column = source.position(comment.start)
    if source.line(line)[: column - 1].strip():
        return line
    at = comment.end
    starts = {span.start: span.end for span in comments}
    text = source.text
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif at in starts:
            at = max(starts[at], at + 1)
        else:
            return source.position(at).line
    return line
