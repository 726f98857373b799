"""Commands as they are typed: split into words and unquoted, nothing expanded.

What a shell would expand (``$NAME``, ``$(...)``, ``~``, ``*``) is left as written, and the word is
marked as not known. Nothing is executed.
"""

from __future__ import annotations

from dsguard.launch.shell.parse import Parser
from dsguard.launch.shell.syntax import Literal, Part, RawWord
from dsguard.launch.shell.text import Chunk, Text, Value, text_of
from dsguard.launch.words import ShellSyntaxError, Word


def split_commands(text: str) -> list[tuple[Word, ...]]:
    """The simple commands of a shell text, without redirections and comments.

    Raises:
        ShellSyntaxError: a quote or an expansion is not closed.
    """
    return _split(Text.written(text, 0, len(text)))


def split_inside(source: str, word: Word) -> list[tuple[Word, ...]]:
    """The simple commands written inside one word, such as the argument of ``bash -c``.

    The spans of the words point into ``source``, the text that holds ``word``.

    Raises:
        ShellSyntaxError: a quote or an expansion is not closed, in the word or inside it.
    """
    outer = Text.written(source, *word.span)
    return _split(Text(_unquoted(outer, Parser(outer.text).word().parts)))


def _split(text: Text) -> list[tuple[Word, ...]]:
    parser = Parser(text.text)
    commands: list[tuple[Word, ...]] = []
    words: list[Word] = []
    try:
        while not parser.at_end():
            if parser.skip_redirection():
                continue
            raw = parser.word()
            if raw.parts:
                words.append(_word(text, raw))
            elif raw.start == raw.end:
                parser.skip_operator()
                commands.append(tuple(words))
                words = []
    except ShellSyntaxError as error:
        place = text.places(error.offset, error.offset)[-1]
        raise ShellSyntaxError(str(error), place.start) from None
    return [command for command in (*commands, tuple(words)) if command]


def _word(text: Text, raw: RawWord) -> Word:
    known = all(isinstance(part, Literal) for part in raw.parts) and not _may_match(raw)
    span = text.places(raw.start, raw.end)[-1]
    return Word(text_of(_unquoted(text, raw.parts)), span, known)


def _unquoted(text: Text, parts: tuple[Part, ...]) -> Value:
    """The characters of a word after unquoting, each at its place; expansions as written."""
    chunks: list[Chunk] = []
    for part in parts:
        written = text.slice(part.start, part.end)
        if isinstance(part, Literal) and part.text != text_of(written):
            chunks.append(Chunk(part.text, text.places(part.start, part.end)))
        else:
            chunks.extend(written)
    return tuple(chunks)


def _may_match(raw: RawWord) -> bool:
    """Whether the shell may replace a word by the names of files."""
    unquoted = [part for part in raw.parts if isinstance(part, Literal) and not part.quoted]
    return any(
        "*" in part.text
        or "?" in part.text
        or (part.start == raw.start and part.text.startswith("~"))
        for part in unquoted
    )
