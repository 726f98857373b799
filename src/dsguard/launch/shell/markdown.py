"""Shell commands in the fenced code blocks of Markdown.

Source: CommonMark 0.31, section 4.5. In a session, only what stands behind a prompt was typed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dsguard.launch.shell.text import Chunk, Text
from dsguard.model.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

_LANGUAGES = ("bash", "sh", "shell", "zsh", "console", "shell-session", "shellsession", "terminal")
_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*\{?\.?([\w-]*)")
_PROMPT = re.compile(r"\s*(?:\([\w.-]+\)\s*)?[$%]\s+")
_CONTINUED = re.compile(r"\s*>\s")
_PLACEHOLDER = re.compile(r"<[A-Za-z][^<>\n]*>|\.\.\.")


def fences(source: Source) -> Iterator[Text]:
    """The text of every fenced block of a shell language.

    A placeholder such as ``<your_script.py>`` is not known.
    """
    opening: re.Match[str] | None = None
    lines: list[Span] = []
    for span in _lines(source.text):
        line = source.slice(span)
        if opening is None:
            opening = _FENCE.match(line.strip())
            if opening is not None and "`" in line.strip()[opening.end() :]:
                opening = None
            lines = []
        elif _closes(line, opening[1]):
            if opening[2].lower() in _LANGUAGES:
                yield _text(source, lines)
            opening = None
        else:
            lines.append(span)


def _closes(line: str, opening: str) -> bool:
    line = line.strip()
    return len(line) >= len(opening) and set(line) == {opening[0]}


def _lines(text: str) -> Iterator[Span]:
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end == -1 else end
        yield Span(at, end)
        at = end + 1


def _text(source: Source, lines: list[Span]) -> Text:
    session = any(_PROMPT.match(source.slice(span)) for span in lines)
    chunks: list[Chunk] = []
    continued = False
    for span in lines:
        line = source.slice(span)
        start = span.start
        if session:
            prompt = (_CONTINUED if continued else _PROMPT).match(line)
            if prompt is None and not continued:
                continue
            start += prompt.end() if prompt else 0
        continued = line.rstrip("\r").endswith("\\")
        end = min(span.end + 1, len(source.text))
        chunks.extend(_with_placeholders(source, Span(start, end)))
    return Text(chunks)


def _with_placeholders(source: Source, span: Span) -> Iterator[Chunk]:
    text = source.slice(span)
    at = 0
    for found in _PLACEHOLDER.finditer(text):
        yield _written(text, span.start, at, found.start())
        place = Span(span.start + found.start(), span.start + found.end())
        # A name that the shell would have to expand: nobody knows what is to be put there.
        name = "${" + re.sub(r"\W+", "_", found[0].strip("<>.") or "placeholder") + "}"
        yield Chunk(name, (place,), known=False)
        at = found.end()
    yield _written(text, span.start, at, len(text))


def _written(text: str, origin: int, start: int, end: int) -> Chunk:
    return Chunk(text[start:end], (Span(origin + start, origin + end),), True)
