"""Where the comments of YAML and Python stand; HJSON's are in its document."""

from __future__ import annotations

import io
import re
import tokenize
from bisect import bisect_right

from dsguard.model.source import Source, Span
from dsguard.model.tree import Array, Document, Node, Object

_HASH = re.compile(r"(?<![^\s])#[^\r\n]*")


def yaml_comments(document: Document) -> list[Span]:
    """The comments of a YAML document: what starts with ``#`` outside its keys and values."""
    taken = sorted(_scalars(document.root))
    starts = [span.start for span in taken]
    found: list[Span] = []
    for match in _HASH.finditer(document.source.text):
        at = bisect_right(starts, match.start()) - 1
        if at < 0 or taken[at].end <= match.start():
            found.append(Span(*match.span()))
    return found


def python_comments(source: Source) -> list[Span]:
    """The comments of a Python file, up to where Python could not read on.

    Python ends lines at a lone carriage return too, which :class:`Source` does not.
    """
    lines = io.StringIO(source.text, newline="")
    starts = [0]

    def read_line() -> str:
        line = lines.readline()
        starts.append(starts[-1] + len(line))
        return line

    found: list[Span] = []
    try:
        for token in tokenize.generate_tokens(read_line):
            if token.type == tokenize.COMMENT:
                line, column = token.start
                start = starts[line - 1] + column
                found.append(Span(start, start + len(token.string)))
    except (tokenize.TokenError, SyntaxError):
        pass
    return found


def _scalars(root: Node) -> list[Span]:
    spans: list[Span] = []
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Object):
            spans += [member.key_span for member in node.members]
            stack += [member.node for member in node.members]
        elif isinstance(node, Array):
            stack += node.items
        else:
            spans.append(node.span)
    return spans
