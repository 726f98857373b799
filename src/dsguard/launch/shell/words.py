"""Parsing the words of a shell text: quotes and expansions, nested as deep as they come."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from dsguard.launch.shell.syntax import Arithmetic, Block, Hidden, Literal, Parameter, Part, RawWord
from dsguard.launch.words import ShellSyntaxError

if TYPE_CHECKING:
    from collections.abc import Callable

BLANK = " \t\r"
_ENDS_WORD = BLANK + "\n;&|()<>"
_DEEPEST = 40
"""How deep commands and expansions may nest."""
SUBSCRIPT = r"\[[^]\n]{0,400}\]"
"""``[...]`` behind the name of an array; a longer one is none, or every ``[`` of a line would be
looked for to its end."""

_RUN = re.compile(r"[^\s;&|()<>'\"\\$`]+|[^\S \t\r\n]+")
_RUN_QUOTED = re.compile(r'[^"\\$`]+')
_RUN_ARGUMENT = re.compile(r"[^'\"\\$`}]+")
_RUN_QUOTED_ARGUMENT = re.compile(r'[^"\\$`}]+')
_RUN_EXPRESSION = re.compile(r'[^"\\$`]')
_NAME = re.compile(r"[A-Za-z_]\w*|\d|[@*#?$!-]", re.ASCII)
_BRACED = re.compile(
    r"\$\{(?P<bang>!)?(?P<length>#(?=[\w@*]))?(?P<name>[A-Za-z_]\w*|\d+|[@*#?$!-])"
    rf"(?P<subscript>{SUBSCRIPT})?",
    re.ASCII,
)
_OPERATOR = re.compile(r":?[-+=?]|##?|%%?|//?|\^\^?|,,?|:|@")
_PARENTHESIS = re.compile(r"[()]")
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_CODE = re.compile(r"\\[0-7xuUc]")
_ESCAPES = dict(zip("ntrabfve", "\n\t\r\a\b\f\v\x1b", strict=True))


class WordParser:
    """Walks over a text; :meth:`commands_until` is what ``$(...)`` needs of the whole grammar."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def commands_until(self, end: str, start: int) -> Block:
        """The commands of an expansion that starts at ``start``, and skip its ``end``."""
        raise NotImplementedError

    def nested(self, parse: Callable[[], None]) -> None:
        """Parse something that may hold itself.

        Raises:
            ShellSyntaxError: the text nests too deep to be read.
        """
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ShellSyntaxError("the text nests too deep", self.at)
        parse()
        self.depth -= 1

    def word(self) -> RawWord:
        """The word that starts here; it has no parts where none does."""
        start = self.at
        parts: list[Part] = []
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in _ENDS_WORD:
                opens = self.text.startswith("(", self.at + 1)
                if character in "<>" and opens and self.at == start:
                    self._substitution(parts, 2, False)
                    continue
                if character == "(" and self.at > start and self.text[self.at - 1] in "?*+@!":
                    self._substitution(parts, 1, False)
                    continue
                break
            self._part(parts, _RUN, False)
        return RawWord(start, self.at, tuple(parts))

    def _part(self, parts: list[Part], run: re.Pattern[str], quoted: bool) -> None:
        """The next part. In double quotes, single quotes stand for themselves."""
        start = self.at
        character = self.text[start]
        if character == "'" and not quoted:
            self._single_quoted(parts)
        elif character == '"':
            self._double_quoted(parts)
        elif character == "\\":
            self._escaped(parts, quoted)
        elif character == "$":
            self._dollar(parts, quoted)
        elif character == "`":
            self._backticks(parts, quoted)
        else:
            found = run.match(self.text, start)
            self.at = found.end() if found else start + 1
            parts.append(Literal(start, self.at, quoted, self.text[start : self.at]))

    def here_document(self) -> tuple[Part, ...]:
        """The whole text as the lines of a here-document, in which a double quote is no sign."""
        parts: list[Part] = []
        while self.at < len(self.text):
            quote = self.at + self.text.startswith('\\"', self.at)
            if self.text.startswith('"', quote):
                parts.append(Literal(self.at, quote + 1, True, self.text[self.at : quote + 1]))
                self.at = quote + 1
            else:
                self._part(parts, _RUN_QUOTED, True)
        return tuple(parts)

    def _single_quoted(self, parts: list[Part]) -> None:
        start = self.at + 1
        end = self.text.find("'", start)
        if end == -1:
            raise ShellSyntaxError("a single quote is not closed", self.at)
        parts.append(Literal(start, end, True, self.text[start:end]))
        self.at = end + 1

    def _double_quoted(self, parts: list[Part]) -> None:
        start = self.at
        self.at += 1
        parts.append(Literal(self.at, self.at, True, ""))

        def inside() -> None:
            while self.at < len(self.text) and self.text[self.at] != '"':
                self._part(parts, _RUN_QUOTED, True)

        self.nested(inside)
        if self.at >= len(self.text):
            raise ShellSyntaxError("a double quote is not closed", start)
        self.at += 1

    def _escaped(self, parts: list[Part], quoted: bool) -> None:
        start = self.at
        if self.text.startswith(("\\\n", "\\\r\n"), start):
            self.at = self.text.index("\n", start) + 1
            return
        following = self.text[start + 1 : start + 2]
        if not following:
            raise ShellSyntaxError("nothing follows a backslash", start)
        self.at += 2
        if quoted and following not in '$`"\\}':
            parts.append(Literal(start, self.at, True, "\\" + following))
        else:
            parts.append(Literal(start + 1, self.at, True, following))

    def _backticks(self, parts: list[Part], quoted: bool) -> None:
        start = self.at
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != "`":
            self.at += 2 if self.text[self.at] == "\\" else 1
        if self.at >= len(self.text):
            raise ShellSyntaxError("a backtick is not closed", start)
        self.at += 1
        parts.append(Hidden(start, self.at, quoted))

    def _dollar(self, parts: list[Part], quoted: bool) -> None:
        start = self.at
        if self.text.startswith("$((", start):
            end = self._closing_parentheses(start + 3)
            if end is not None:
                self._arithmetic(parts, end, quoted)
                return
        if self.text.startswith("$(", start):
            self._substitution(parts, 2, quoted)
        elif self.text.startswith("${", start):
            self.nested(lambda: self._braced(parts, quoted))
        elif self.text.startswith("$'", start) and not quoted:
            self._ansi_quoted(parts)
        elif self.text.startswith('$"', start) and not quoted:
            self.at += 1
        elif (name := _NAME.match(self.text, start + 1)) is not None:
            self.at = name.end()
            parts.append(Parameter(start, self.at, quoted, name[0]))
        else:
            self.at += 1
            parts.append(Literal(start, self.at, quoted, "$"))

    def _substitution(self, parts: list[Part], opening: int, quoted: bool) -> None:
        start = self.at
        self.at += opening
        found: list[Block] = []
        self.nested(lambda: found.append(self.commands_until(")", start)))
        parts.append(Hidden(start, self.at, quoted, found[0]))

    def _closing_parentheses(self, start: int) -> int | None:
        """Where the ``))`` stands that ends an expression; None where another thing is meant.

        ``start`` is behind the ``((`` that opens it.
        """
        at = self._closing.get(start - 1)
        return at if at is not None and self.text.startswith("))", at) else None

    @cached_property
    def _closing(self) -> dict[int, int]:
        """Where each parenthesis is closed that stands behind another one."""
        found: dict[int, int] = {}
        open_: list[int] = []
        for match in _PARENTHESIS.finditer(self.text):
            at = match.start()
            if match[0] == "(":
                open_.append(at)
            elif open_ and self.text.startswith("((", (opening := open_.pop()) - 1):
                found[opening] = at
        return found

    def _arithmetic(self, parts: list[Part], end: int, quoted: bool) -> None:
        start = self.at
        inside: list[Part] = []
        self.at += 3

        def expression() -> None:
            while self.at < end:
                self._part(inside, _RUN_EXPRESSION, True)

        self.nested(expression)
        self.at = end + 2
        parts.append(Arithmetic(start, self.at, quoted, tuple(inside)))

    def _braced(self, parts: list[Part], quoted: bool) -> None:
        start = self.at
        found = _BRACED.match(self.text, start)
        self.at = found.end() if found else start + 2
        operator = _OPERATOR.match(self.text, self.at)
        if found and operator:
            self.at = operator.end()
        argument: list[Part] = []
        run = _RUN_QUOTED_ARGUMENT if quoted else _RUN_ARGUMENT
        while self.at < len(self.text) and self.text[self.at] != "}":
            self._part(argument, run, quoted)
        if self.at >= len(self.text):
            raise ShellSyntaxError("an expansion is not closed", start)
        self.at += 1
        if found is None or found["bang"] or (argument and operator is None):
            parts.append(Hidden(start, self.at, quoted))
            return
        parts.append(
            Parameter(
                start,
                self.at,
                quoted,
                found["name"],
                (found["subscript"] or "")[1:-1],
                operator[0] if operator else "",
                tuple(argument),
                found["length"] is not None,
            )
        )

    def _ansi_quoted(self, parts: list[Part]) -> None:
        """``$'...'``, with the escapes that are one character."""
        start = self.at
        found = _ANSI.match(self.text, start)
        if found is None:
            raise ShellSyntaxError("a single quote is not closed", start)
        self.at = found.end()
        if _CODE.search(found[1]):
            parts.append(Hidden(start, self.at, True))
            return
        text = _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), found[1])
        parts.append(Literal(start, self.at, True, text))
