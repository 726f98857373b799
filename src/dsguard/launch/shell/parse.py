"""Parsing a shell text into commands, with every word at its place.

What bash would refuse ends the reading there; the commands before it are kept, because bash
runs those too. Nothing is executed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from dsguard.launch.shell.syntax import (
    Assignment,
    Block,
    Calculation,
    Case,
    Chain,
    Function,
    Group,
    HereDocument,
    If,
    Loop,
    Negation,
    Node,
    Pipeline,
    RawWord,
    Redirected,
    Simple,
    Test,
)
from dsguard.launch.shell.words import BLANK, SUBSCRIPT, WordParser
from dsguard.launch.words import ShellSyntaxError
from dsguard.model.source import Span

DECLARATIONS = ("export", "declare", "typeset", "local", "readonly")
"""Commands whose arguments are assignments."""

_ASSIGNMENT = re.compile(rf"([A-Za-z_]\w*)({SUBSCRIPT})?(\+?)=", re.ASCII)
_FUNCTION = re.compile(r"([^\s;&|()<>'\"\\$`=]+)[ \t]*\([ \t]*\)")
_RESERVED = re.compile(r"(\{|\}|!|\[\[|[a-z]+)(?=[\s;&|()<>]|\Z)")
_REDIRECTION = re.compile(
    r"(?:\d*|\{[A-Za-z_]\w*\})(<<<|<<-|<<|&>>|&>|>>|>&|>\||<>|<&|>(?!\()|<(?!\())"
)
_INTO_FILE = (">", ">>", ">|", "&>", "&>>")
_OPERATORS = ("&&", "||", ";;", ";", "|&", "|", "&", "\n", "(", ")")
_STRAY = ("then", "elif", "else", "fi", "do", "done", "esac", "}", "in")


class Parsed(NamedTuple):
    """The commands of a text, up to the place where it is no shell text any more."""

    block: Block
    error: ShellSyntaxError | None


def parse(text: str) -> Parsed:
    """Parse a whole text."""
    return Parser(text).whole()


class Parser(WordParser):
    """Parses commands; :func:`parse` is what most callers want."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.heredocs: list[HereDocument] = []
        self.comments: set[Span] = set()

    def whole(self) -> Parsed:
        """All commands, up to the first place that bash could not read."""
        chains: list[Chain] = []
        try:
            while True:
                self._skip_between()
                if self.at >= len(self.text):
                    return Parsed(tuple(chains), None)
                chains.append(self._chain())
        except ShellSyntaxError as error:
            return Parsed(tuple(chains), error)

    def commands_until(self, end: str, start: int) -> Block:
        """The commands of an expansion that starts at ``start``, and skip its ``end``."""
        chains: list[Chain] = []
        while True:
            self._skip_between()
            if self.at >= len(self.text):
                raise ShellSyntaxError("an expansion is not closed", start)
            if self.text.startswith(end, self.at):
                self.at += len(end)
                return tuple(chains)
            chains.append(self._chain())

    def at_end(self) -> bool:
        """Whether nothing but blanks and comments is left."""
        self._skip_blank()
        return self.at >= len(self.text)

    def skip_operator(self) -> None:
        """Skip what ends a command."""
        found = next((o for o in _OPERATORS if self.text.startswith(o, self.at)), None)
        self.at += len(found) if found is not None else 1
        if found == "\n":
            self._skip_heredocs()

    def skip_redirection(self) -> bool:
        """Skip a redirection, if one stands here."""
        found = _REDIRECTION.match(self.text, self.at)
        if found is not None:
            self._redirection(found)
        return found is not None

    def _block(self, ends: tuple[str, ...]) -> Block:
        """The commands up to one of the words or signs in ``ends``, which is not taken."""
        start = self.at
        chains: list[Chain] = []
        while True:
            self._skip_between(cases=";;" in ends)
            if self.at >= len(self.text):
                raise ShellSyntaxError(f"{ends[-1]} is missing", start)
            if self._end(ends) is not None:
                return tuple(chains)
            chains.append(self._chain())

    def _end(self, ends: tuple[str, ...]) -> str | None:
        reserved = self._reserved()
        for end in ends:
            if end == reserved or (not end[0].isalpha() and self.text.startswith(end, self.at)):
                return end
        return None

    def _reserved(self) -> str:
        found = _RESERVED.match(self.text, self.at)
        return found[1] if found else ""

    def _take(self, word: str) -> None:
        """Take a word or sign that must come next."""
        self._skip_between()
        if not self.text.startswith(word, self.at):
            raise ShellSyntaxError(f"{word} is missing", self.at)
        self.at += len(word)

    def _skip_blank(self) -> None:
        """Blanks, continued lines and comments."""
        while self.at < len(self.text):
            if self.text[self.at] in BLANK:
                self.at += 1
            elif self.text.startswith(("\\\n", "\\\r\n"), self.at):
                self.at = self.text.index("\n", self.at) + 1
            elif self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                start, self.at = self.at, len(self.text) if end == -1 else end
                self.comments.add(Span(start, self.at))
            else:
                return

    def _skip_between(self, cases: bool = False) -> None:
        """Everything that may stand between two commands."""
        while True:
            self._skip_blank()
            if self.text.startswith("\n", self.at):
                self.at += 1
                self._skip_heredocs()
            elif self.text.startswith(";", self.at) and not (
                cases and self.text.startswith((";;", ";&"), self.at)
            ):
                self.at += 1
            else:
                return

    def _skip_heredocs(self) -> None:
        for heredoc in self.heredocs:
            heredoc.start = heredoc.end = self.at
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end == -1 else end
                line = self.text[self.at : end].rstrip("\r")
                self.at = min(end + 1, len(self.text))
                if (line.lstrip("\t") if heredoc.tabs else line) == heredoc.delimiter:
                    break
                heredoc.end = self.at
        self.heredocs.clear()

    def _chain(self) -> Chain:
        commands = [self._pipeline()]
        joints: list[str] = []
        while True:
            self._skip_blank()
            joint = self.text[self.at : self.at + 2]
            if joint not in ("&&", "||"):
                break
            self.at += 2
            joints.append(joint)
            self._skip_between()
            commands.append(self._pipeline())
        background = self.text.startswith("&", self.at)
        self.at += background
        return Chain(tuple(commands), tuple(joints), background)

    def _pipeline(self) -> Node:
        commands = [self._command()]
        while True:
            self._skip_blank()
            if not self.text.startswith("|", self.at) or self.text.startswith("||", self.at):
                return commands[0] if len(commands) == 1 else Pipeline(tuple(commands))
            self.at += 2 if self.text.startswith("|&", self.at) else 1
            self._skip_between()
            commands.append(self._command())

    def _command(self) -> Node:
        made: list[Node] = []
        self.nested(lambda: made.append(self._any_command()))
        return made[0]

    def _any_command(self) -> Node:
        while self._reserved() in ("time", "coproc"):
            self._skip_word()
            if self.text.startswith(("-p ", "-p\t"), self.at):
                self._skip_word()
        reserved = self._reserved()
        if reserved == "!":
            self._skip_word()
            return Negation(self._command())
        if self.text.startswith("((", self.at):
            end = self._closing_parentheses(self.at + 2)
            if end is not None:
                expression = self.text[self.at + 2 : end]
                self.at = end + 2
                return Calculation(expression)
        if self.text.startswith("(", self.at):
            self.at += 1
            return self._redirected(self._group(")", subshell=True))
        if reserved in _STRAY:
            raise ShellSyntaxError(f"{reserved} stands alone", self.at)
        if reserved == "function":
            self._skip_word()
            return self._function()
        compound = {
            "{": lambda: self._group("}", subshell=False),
            "if": self._if,
            "for": self._for,
            "select": self._for,
            "while": self._while,
            "until": self._while,
            "case": self._case,
            "[[": self._test,
        }.get(reserved)
        if compound is not None:
            self.at += len(reserved)
            return self._redirected(compound())
        if _FUNCTION.match(self.text, self.at):
            return self._function()
        return self._simple()

    def _skip_word(self) -> None:
        self.word()
        self._skip_blank()

    def _group(self, end: str, *, subshell: bool) -> Node:
        body = self._block((end,))
        self._take(end)
        return Group(body, subshell)

    def _if(self) -> Node:
        branches: list[tuple[Block, Block]] = []
        otherwise = None
        end: str | None = "if"
        while end in ("if", "elif"):
            condition = self._block(("then",))
            self._take("then")
            branches.append((condition, self._block(("elif", "else", "fi"))))
            end = self._end(("elif", "else", "fi"))
            self._take(end or "fi")
        if end == "else":
            otherwise = self._block(("fi",))
            self._take("fi")
        return If(tuple(branches), otherwise)

    def _for(self) -> Node:
        self._skip_blank()
        if self.text.startswith("((", self.at):
            end = self._closing_parentheses(self.at + 2)
            if end is None:
                raise ShellSyntaxError("the expression of a loop is not closed", self.at)
            self.at = end + 2
            return Loop(self._loop_body())
        name = self.word().plain
        words: tuple[RawWord, ...] | None = None
        self._skip_between()
        if self._reserved() == "in":
            self._skip_word()
            words = self._words()
        return Loop(self._loop_body(), name=name, words=words)

    def _words(self) -> tuple[RawWord, ...]:
        words: list[RawWord] = []
        while True:
            self._skip_blank()
            word = self.word()
            if word.start == word.end:
                return tuple(words)
            words.append(word)

    def _loop_body(self) -> Block:
        self._skip_between()
        opening, closing = ("{", "}") if self._reserved() == "{" else ("do", "done")
        self._take(opening)
        body = self._block((closing,))
        self._take(closing)
        return body

    def _while(self) -> Node:
        condition = self._block(("do",))
        return Loop(self._loop_body(), condition)

    def _case(self) -> Node:
        self._skip_blank()
        word = self.word()
        self._take("in")
        arms: list[tuple[tuple[RawWord, ...], Block]] = []
        falls = False
        while True:
            self._skip_between()
            if self._reserved() == "esac":
                self._take("esac")
                return Case(word, tuple(arms), falls)
            if self.text.startswith("(", self.at):
                self.at += 1
            arms.append((self._patterns(), self._block((";;", ";&", "esac"))))
            end = next((e for e in (";;&", ";;", ";&") if self.text.startswith(e, self.at)), "")
            falls = falls or end.endswith("&")
            self.at += len(end)

    def _patterns(self) -> tuple[RawWord, ...]:
        patterns: list[RawWord] = []
        while True:
            self._skip_blank()
            word = self.word()
            patterns.append(word)
            self._skip_blank()
            if self.text.startswith(")", self.at):
                self.at += 1
                return tuple(patterns)
            if word.start == word.end or not self.text.startswith("|", self.at):
                raise ShellSyntaxError("the pattern of a case is not closed", self.at)
            self.at += 1

    def _test(self) -> Node:
        """``[[ ... ]]``, where ``<``, ``(`` and ``|`` are operators of its own."""
        start = self.at
        words: list[RawWord] = []
        single = True
        while self.at < len(self.text):
            if self.text.startswith("]]", self.at) and self.text[self.at - 1] in " \t\n":
                self.at += 2
                return Test(tuple(words) if single else ())
            word = self.word()
            if word.parts:
                words.append(word)
                continue
            single = single and self.text[self.at] in " \t\r\n"
            self.at += 1
        raise ShellSyntaxError("]] is missing", start)

    def _function(self) -> Node:
        found = _FUNCTION.match(self.text, self.at)
        if found is not None:
            name = found[1]
            self.at = found.end()
        else:
            name = self.word().plain
        self._skip_between()
        if self.at >= len(self.text):
            raise ShellSyntaxError(f"the function {name} has no body", self.at)
        return Function(name, self._command())

    def _simple(self) -> Node:
        start = self.at
        assignments: list[Assignment] = []
        words: list[RawWord] = []
        here: list[RawWord] = []
        documents: list[HereDocument] = []
        targets: list[RawWord] = []
        outputs: list[RawWord] = []
        while self.at < len(self.text):
            self._skip_blank()
            before = self.at
            redirection = _REDIRECTION.match(self.text, self.at)
            if redirection is not None:
                found = self._redirection(redirection)
                if isinstance(found, HereDocument):
                    documents.append(found)
                else:
                    (here if redirection[1] == "<<<" else targets).append(found)
                    if redirection[1] in _INTO_FILE:
                        outputs.append(found)
                continue
            declares = not words or words[0].plain in DECLARATIONS
            if declares and _ASSIGNMENT.match(self.text, self.at):
                assignments.append(self._assignment())
                continue
            word = self.word()
            if self.at == before:
                break
            if word.parts:
                words.append(word)
        if self.at == start:
            sign = self.text[self.at : self.at + 1] or "the end"
            raise ShellSyntaxError(f"{sign} stands where a command should", self.at)
        return Simple(
            start,
            self.at,
            tuple(assignments),
            tuple(words),
            here[-1] if here else None,
            tuple(documents),
            tuple(targets),
            tuple(outputs),
        )

    def _assignment(self) -> Assignment:
        start = self.at
        found = _ASSIGNMENT.match(self.text, start)
        assert found is not None
        self.at = found.end()
        name, append, indexed = found[1], bool(found[3]), found[2] is not None
        if not self.text.startswith("(", self.at):
            value = self.word()
            return Assignment(start, self.at, name, append, indexed, value, None)
        self.at += 1
        items: list[RawWord] = []
        while True:
            self._skip_between()
            if self.text.startswith(")", self.at):
                self.at += 1
                return Assignment(start, self.at, name, append, indexed, None, tuple(items))
            item = self.word()
            if item.start == item.end:
                raise ShellSyntaxError(f"the array {name} is not closed", start)
            items.append(item)

    def _redirection(self, found: re.Match[str]) -> RawWord | HereDocument:
        self.at = found.end()
        self._skip_blank()
        target = self.word()
        if found[1] in ("<<", "<<-"):
            written = self.text[target.start : target.end]
            delimiter = re.sub(r"[\\'\"]", "", written)
            document = HereDocument(delimiter, found[1] == "<<-", delimiter != written)
            self.heredocs.append(document)
            return document
        return target

    def _redirected(self, node: Node) -> Node:
        """A compound command with the redirections behind it."""
        outputs: list[RawWord] = []
        self._skip_blank()
        while (redirection := _REDIRECTION.match(self.text, self.at)) is not None:
            found = self._redirection(redirection)
            if redirection[1] in _INTO_FILE and isinstance(found, RawWord):
                outputs.append(found)
            self._skip_blank()
        return Redirected(node, tuple(outputs)) if outputs else node
