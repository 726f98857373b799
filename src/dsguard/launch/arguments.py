"""Words read as arguments, without knowing the parser that will read them.

What a script's own parser makes of them is not decided here; the rules that any argparse
keeps are: a dash opens an argument unless the word is a negative number or holds a blank,
``--name=value`` is one argument, and after a lone ``--`` everything is positional.
Source: Python's ``argparse`` documentation, "Arguments containing -".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dsguard.launch.context import Argument, Command, ScriptArguments, Word
from dsguard.launch.words import hidden_part
from dsguard.model.source import Location, Span

if TYPE_CHECKING:
    from collections.abc import Sequence

_NEGATIVE_NUMBER = r"(?i)-(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?$|-(inf|nan)$"


def read_arguments(command: Command, words: Sequence[Word]) -> ScriptArguments:
    """The arguments of a training script whose parser is not known."""
    arguments: list[Argument] = []
    positionals: list[Word] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word.text == "--":
            positionals.extend(words[at:])
            break
        flag = _flag(word)
        if flag is None:
            positionals.append(word)
        elif len(flag) < len(word.text):
            arguments.append(joined(command, word, flag, len(flag) + 1))
        elif at < len(words) and words[at].text != "--" and _flag(words[at]) is None:
            arguments.append(separate(command, word, words[at]))
            at += 1
        else:
            arguments.append(alone(command, word))
    return ScriptArguments(arguments, positionals)


def read_assignment(command: Command, word: Word) -> Argument | None:
    """A ``NAME=value`` word, or None for any other word."""
    name, equals, _ = word.text.partition("=")
    if not equals or not name.isascii() or not name.isidentifier():
        return None
    return joined(command, word, name, len(name) + 1, name)


def joined(
    command: Command, word: Word, flag: str, start: int, name: str | None = None
) -> Argument:
    """``--flag=value`` or ``-fvalue`` in one word; the value starts at its character ``start``."""
    return Argument(
        name or flag_name(flag),
        flag,
        word.text[start:],
        command.locate(word),
        Location(command.source, _tail_span(command, word, start)),
        word.known,
    )


def separate(command: Command, word: Word, value: Word, name: str | None = None) -> Argument:
    """``--flag value`` in two words; in a script the value may be written before the flag."""
    behind = word.span.end <= value.span.start
    span = Span(word.span.start, value.span.end) if behind else word.span
    location = Location(command.source, span)
    return Argument(
        name or flag_name(word.text),
        word.text,
        value.text,
        location,
        command.locate(value),
        word.known and value.known,
    )


def alone(command: Command, word: Word, flag: str = "", name: str | None = None) -> Argument:
    """A flag without a value; ``flag`` where the word is more than the flag (``-xu``)."""
    flag = flag or word.text
    location = command.locate(word)
    return Argument(name or flag_name(flag), flag, None, location, location, word.known)


def flag_name(flag: str) -> str:
    """The name of a flag: no leading dashes, hyphens as underscores."""
    return flag.lstrip("-").replace("-", "_")


def hidden_reason(argument: Argument) -> str:
    """Why the value of an argument is not known, as the reason of a fact."""
    return f"{argument.flag} depends on {hidden_part(argument.value or argument.flag)}"


def _flag(word: Word) -> str | None:
    """The flag that a word begins with, up to a ``=``; None where it begins with none."""
    flag, text = word.text.partition("=")[0], word.text
    if len(flag) < 2 or flag[0] != "-" or not text.strip("-") or flag.split() != [flag]:
        return None
    may_be_number = not flag.startswith("--") and re.match(_NEGATIVE_NUMBER, text)
    return None if may_be_number else flag


def _tail_span(command: Command, word: Word, start: int) -> Span:
    """Where a word's text from ``start`` on stands; the whole word where quotes hide it."""
    raw = command.source.slice(word.span)
    head = word.text[:start]
    if raw.startswith(head):
        return Span(word.span.start + start, word.span.end)
    quote = raw[:1]
    if quote in ("'", '"') and raw.endswith(quote) and raw.startswith(head, 1):
        return Span(word.span.start + 1 + start, word.span.end - 1)
    return word.span
