"""Words as a shell sees them: unquoted, each at its place in the text.

Only quoting is done here. What a shell would expand (``$NAME``, ``$(...)``, ``~``, ``*``)
is left as written and the word is marked as not known. Nothing is executed.
Source: POSIX.1-2017, Shell Command Language, sections 2.2 (quoting) and 2.3 (tokens).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dsguard.model.source import Span


class Word(NamedTuple):
    """One word of a command.

    ``text`` is the word after the shell's unquoting. ``known`` is False where the shell
    would still have to expand something that dsguard cannot know, such as ``$NODES``;
    ``text`` then holds it as written.
    """

    text: str
    span: Span
    known: bool = True


class ShellSyntaxError(ValueError):
    """A text that no shell could split into words. ``offset`` is where the trouble starts."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


_BLANK = " \t\r"
_SEPARATORS = ("&&", "||", ";;", ";", "|&", "|", "&", "\n", "(", ")")
_REDIRECTIONS = ("&>>", "&>", "<<<", "<<", "<&", "<>", ">>", ">&", ">|", "<", ">")
_EXPANSIONS = re.compile(r"\$\{?([A-Za-z_]\w*)|(\$\(|`)")


def split_commands(text: str) -> list[tuple[Word, ...]]:
    """The simple commands of a shell text, without redirections and comments.

    Raises:
        ShellSyntaxError: a quote or an expansion is not closed.
    """
    return _Splitter(text, range(len(text) + 1)).commands()


def split_inside(source: str, word: Word) -> list[tuple[Word, ...]]:
    """The simple commands written inside one word, such as the argument of ``bash -c``.

    The spans of the words point into ``source``, the text that holds ``word``.

    Raises:
        ShellSyntaxError: a quote or an expansion is not closed, in the word or inside it.
    """
    outer = _Splitter(source[: word.span.end], range(word.span.end + 1))
    outer.at = word.span.start
    characters = outer.word()
    text = "".join(character for character, _ in characters)
    return _Splitter(text, [*(offset for _, offset in characters), word.span.end]).commands()


def hidden_part(text: str) -> str:
    """What in an unknown word only the shell could know, in words for a message."""
    found = _EXPANSIONS.search(text)
    if found is None:
        return f"what the shell makes of {text}"
    return f"the shell variable {found[1]}" if found[1] else "the output of a command"


class _Splitter:
    """Walks over a text; ``offsets`` say where each of its characters stands in the source."""

    def __init__(self, text: str, offsets: Sequence[int]) -> None:
        self.text = text
        self.offsets = offsets
        self.at = 0
        self.known = True

    def commands(self) -> list[tuple[Word, ...]]:
        commands: list[tuple[Word, ...]] = []
        words: list[Word] = []
        while self.at < len(self.text):
            if self._skip_blank():
                continue
            if self._skip_redirection():
                continue
            separator = self._operator(_SEPARATORS)
            if separator is not None:
                self.at += len(separator)
                commands.append(tuple(words))
                words = []
                continue
            start = self.at
            characters = self.word()
            text = "".join(character for character, _ in characters)
            # After the last character, not at the next one: the two differ inside a word.
            span = Span(self.offsets[start], self.offsets[self.at - 1] + 1)
            words.append(Word(text, span, self.known))
        return [command for command in (*commands, tuple(words)) if command]

    def word(self) -> list[tuple[str, int]]:
        """The characters of the word that starts here, each with its place in the source."""
        self.known = True
        characters: list[tuple[str, int]] = []
        start = self.at
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == "'":
                self._single_quoted(characters)
            elif character == '"':
                self._double_quoted(characters)
            elif character == "\\":
                self._escaped(characters)
            elif character in "$`":
                self._expansion(characters)
            elif self.text.startswith(("<(", ">("), self.at) and self.at == start:
                self.known = False
                self._balanced(characters, 2)
            elif character in _BLANK or self._operator(_SEPARATORS + _REDIRECTIONS):
                break
            else:
                if character in "*?" or (character == "~" and self.at == start):
                    self.known = False
                self._take(characters)
        return characters

    def _skip_blank(self) -> bool:
        if self.text[self.at] in _BLANK:
            self.at += 1
        elif self.text.startswith("\\\n", self.at):
            self.at += 2
        elif self.text[self.at] == "#":
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end == -1 else end
        else:
            return False
        return True

    def _skip_redirection(self) -> bool:
        start = self.at
        while self.at < len(self.text) and self.text[self.at].isdecimal():
            self.at += 1
        operator = self._operator(_REDIRECTIONS)
        if operator is None or self.text.startswith(("<(", ">("), start):
            self.at = start
            return False
        self.at += len(operator)
        while self.at < len(self.text) and self.text[self.at] in _BLANK:
            self.at += 1
        self.word()
        return True

    def _operator(self, operators: tuple[str, ...]) -> str | None:
        return next((o for o in operators if self.text.startswith(o, self.at)), None)

    def _take(self, characters: list[tuple[str, int]]) -> None:
        characters.append((self.text[self.at], self.offsets[self.at]))
        self.at += 1

    def _single_quoted(self, characters: list[tuple[str, int]]) -> None:
        end = self.text.find("'", self.at + 1)
        if end == -1:
            raise ShellSyntaxError("a single quote is not closed", self.offsets[self.at])
        self.at += 1
        while self.at < end:
            self._take(characters)
        self.at += 1

    def _double_quoted(self, characters: list[tuple[str, int]]) -> None:
        start = self.at
        self.at += 1
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == '"':
                self.at += 1
                return
            if character in "$`":
                self._expansion(characters)
            elif character == "\\" and self.text[self.at + 1 : self.at + 2] in tuple('$`"\\\n'):
                self._escaped(characters)
            else:
                self._take(characters)
        raise ShellSyntaxError("a double quote is not closed", self.offsets[start])

    def _escaped(self, characters: list[tuple[str, int]]) -> None:
        self.at += 1
        if self.at >= len(self.text):
            raise ShellSyntaxError("nothing follows a backslash", self.offsets[self.at - 1])
        if self.text[self.at] == "\n":
            self.at += 1
        else:
            self._take(characters)

    def _expansion(self, characters: list[tuple[str, int]]) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if self.text[self.at] == "`":
            end = self.text.find("`", self.at + 1)
            if end == -1:
                raise ShellSyntaxError("a backtick is not closed", self.offsets[self.at])
            self.known = False
            while self.at <= end:
                self._take(characters)
        elif following and following in "({":
            self.known = False
            self._balanced(characters, 2)
        else:
            # A dollar sign before anything else (a blank, the end) stands for itself.
            if following.isalnum() or (following and following in "_@*#?!-$'\""):
                self.known = False
            self._take(characters)

    def _balanced(self, characters: list[tuple[str, int]], opening: int) -> None:
        """Take an expansion up to its closing bracket; quotes inside hide brackets."""
        start = self.at
        closing = {"(": ")", "{": "}"}
        stack: list[str] = []
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in "'\"" and self.at >= start + opening:
                end = self.text.find(character, self.at + 1)
                if end == -1:
                    break
                while self.at < end:
                    self._take(characters)
            elif character in closing:
                stack.append(closing[character])
            elif stack and character == stack[-1]:
                stack.pop()
                if not stack:
                    self._take(characters)
                    return
            self._take(characters)
        raise ShellSyntaxError("an expansion is not closed", self.offsets[start])
