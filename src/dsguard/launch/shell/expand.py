"""Expanding words as bash would, as far as it is certain.

A script is judged as it is run by itself: without arguments, and without variables that its
caller may have set. ``${GPUS:-8}`` is then 8, while ``$GPUS`` alone is not known. Source: Bash
Reference Manual, section 3.5.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple
from typing import Literal as Choice

from dsguard.launch.shell.arithmetic import evaluate
from dsguard.launch.shell.parse import Parser
from dsguard.launch.shell.state import Array, Content, State, Variable
from dsguard.launch.shell.syntax import (
    Arithmetic,
    HereDocument,
    Literal,
    Parameter,
    Part,
    RawWord,
)
from dsguard.launch.shell.text import Chunk, Text, Value, hulls, is_known, text_of
from dsguard.launch.words import ShellSyntaxError, Word
from dsguard.model.source import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LARGEST = 1 << 18
"""The values of variables in one command have no more characters than this."""
_CHUNK = 20
"""A chunk, which has places of its own, is as much work as so many characters."""
_FIELDS = re.compile(r"[ \t\n]+|[^ \t\n]+")
_GLOB = re.compile(r"[*?]")
_BEHIND_TABS = re.compile(r"^\t*([^\n]*\n?)", re.MULTILINE)
_BRACES = re.compile(r"\{([^{}\s]*)\}")
_ALWAYS_SET = frozenset(
    (
        "BASH", "BASHPID", "BASH_SOURCE", "BASH_VERSION", "EUID", "FUNCNAME", "GROUPS", "HOME",
        "HOSTNAME", "HOSTTYPE", "IFS", "LANG", "LINENO", "LOGNAME", "MACHTYPE", "OLDPWD", "OSTYPE",
        "PATH", "PPID", "PWD", "RANDOM", "SECONDS", "SHELL", "SHLVL", "TERM", "TMPDIR", "UID",
        "USER",
    )
)  # fmt: skip
"""Variables that are set whoever runs the script."""
_DEFAULTS = (":-", "-", ":=", "=")


class Field(NamedTuple):
    """One word after expansion.

    ``chains`` are the places that it, or its parts, stand at. ``single`` is False where a running
    shell may make any number of words of it.
    """

    chunks: Value
    chains: tuple[tuple[Span, ...], ...]
    single: bool = True


class _Piece(NamedTuple):
    """A part of a word after expansion.

    A ``break`` parts two fields. ``nothing`` is an empty ``"$@"``, which makes no field.
    """

    chunk: Chunk
    kind: Choice["quoted", "written", "expanded", "break", "nothing"]


_BREAK = _Piece(Chunk("", (Span(0, 0),)), "break")
_NOTHING = _Piece(Chunk("", (Span(0, 0),)), "nothing")


class Expander:
    """Expands the words of one text in a state, which ``${NAME:=value}`` changes.

    With ``by_itself``, a variable that nobody sets is empty instead of not known.
    """

    def __init__(self, text: Text, state: State, *, by_itself: bool = False) -> None:
        self.text = text
        self.state = state
        self.by_itself = by_itself
        self.inserted = 0
        """Characters of the values of variables, chunks included: how much work it was. A chunk
        that is only looked at counts as one."""

    def fields(self, words: Iterable[RawWord]) -> list[Field]:
        """The words that a command gets."""
        found: list[Field] = []
        for word in words:
            values = self._split(self._pieces(word.parts))
            raw = self.text.slice(word.start, word.end)
            alone = len(values) == 1 and raw
            for value, single in values:
                found.append(Field(value, _chains(raw if alone else value), single))
        return found

    def value(self, word: RawWord) -> Value:
        """The value of an assignment: nothing is split."""
        return self.joined(word.parts)

    def joined(self, parts: Iterable[Part]) -> Value:
        """Parts as one value."""
        return self._joined(self._pieces(parts))

    def document(self, document: HereDocument) -> Text | None:
        """The lines of a here-document; None where they are none that bash could read."""
        text = Text(self.text.slice(document.start, document.end))
        if document.tabs:
            lines = _BEHIND_TABS.finditer(text.text)
            text = Text([chunk for line in lines for chunk in text.slice(*line.span(1))])
        if document.quoted:
            return text
        try:
            parts = Parser(text.text).here_document()
        except ShellSyntaxError:
            return None
        return Text(Expander(text, self.state).joined(parts))

    def array(self, words: Sequence[RawWord]) -> Array | None:
        """The items of ``(...)``; None for an associative array."""
        if any(self.text.text.startswith("[", word.start) for word in words):
            return None
        counted = True
        items: list[Value] = []
        for word in words:
            for value, single in self._split(self._pieces(word.parts)):
                items.append(value)
                counted = counted and single
        return Array(tuple(items), counted)

    def integer(self, expression: str) -> int | None:
        """The value of an arithmetic expression whose expansions are done."""
        return evaluate(expression, self._number)

    def _number(self, name: str) -> str | None:
        variable = self.state.variables.get(name)
        content = variable.content if variable is not None else None
        if content is None or isinstance(content, Array):
            return None
        self.inserted += len(content)
        return (text_of(content) or "0") if is_known(content) else None

    def _pieces(self, parts: Iterable[Part]) -> list[_Piece]:
        pieces: list[_Piece] = []
        for part in parts:
            if isinstance(part, Literal):
                pieces.append(self._literal(part))
            elif not self.text.known(part.start, part.end):
                pieces.append(self._hidden(part))
            elif isinstance(part, Parameter):
                pieces.extend(self._parameter(part))
            elif isinstance(part, Arithmetic):
                expression = self._joined(self._pieces(part.parts))
                known = is_known(expression)
                number = self.integer(text_of(expression)) if known else None
                result = None if number is None else str(number)
                pieces.append(self._hidden(part) if result is None else self._made(part, result))
            else:
                pieces.append(self._hidden(part))
        return pieces

    def _literal(self, part: Literal) -> _Piece:
        chunks = self.text.slice(part.start, part.end)
        if len(chunks) == 1 and chunks[0].text == part.text:
            return _Piece(chunks[0], "quoted" if part.quoted else "written")
        chunk = Chunk(part.text, self.text.places(part.start, part.end), known=is_known(chunks))
        return _Piece(chunk, "quoted" if part.quoted else "written")

    def _hidden(self, part: Part) -> _Piece:
        written = self.text.text[part.start : part.end]
        chunk = Chunk(written, self.text.places(part.start, part.end), known=False)
        several = isinstance(part, Parameter) and _all_items(part)
        return _Piece(chunk, "quoted" if part.quoted and not several else "expanded")

    def _made(self, part: Part, text: str) -> _Piece:
        chunk = Chunk(text, self.text.places(part.start, part.end))
        return _Piece(chunk, "quoted" if part.quoted else "expanded")

    def _parameter(self, part: Parameter) -> list[_Piece]:
        if part.length:
            length = self._length(part)
            return [self._hidden(part) if length is None else self._made(part, str(length))]
        found = self._content(part)
        operator = part.operator
        if operator in _DEFAULTS:
            empty = self._is_empty(found, colon=operator[0] == ":")
            if empty:
                return self._default(part)
        elif operator in (":+", "+"):
            empty = self._is_empty(found, colon=operator[0] == ":")
            if empty is not None:
                return [] if empty else self._argument(part)
            return [self._hidden(part)]
        elif operator in (":?", "?"):
            empty = self._is_empty(found, colon=operator[0] == ":")
        elif operator:
            return [self._hidden(part)]
        else:
            empty = None if found is None else False
        if empty is not False or found is None or found.unset:
            if found is None or not found.unset or operator:
                return [self._hidden(part)]
            return [_NOTHING] if _all_items(part) and part.quoted else []
        return self._insert(part, found.content)

    def _insert(self, part: Parameter, content: Content) -> list[_Piece]:
        """The value of a variable, as pieces."""
        items: tuple[Value, ...]
        if part.subscript in ("@", "*") or part.name in ("@", "*"):
            items = content.items if isinstance(content, Array) else (content or (),)
        else:
            single = _item(content, part.subscript)
            if single is None:
                return [self._hidden(part)]
            items = (single,)
        places = self.text.places(part.start, part.end)
        kind: Choice["quoted", "expanded"] = "quoted" if part.quoted else "expanded"
        self.inserted += sum(len(text_of(item)) + _CHUNK * len(item) for item in items)
        if self.inserted > _LARGEST:
            return [self._hidden(part)]
        star = part.quoted and "*" in (part.subscript, part.name)
        if not items and part.quoted and not star:
            return [_NOTHING]
        pieces: list[_Piece] = []
        for item in items:
            if pieces:
                pieces.append(_Piece(Chunk(" ", places), "quoted") if star else _BREAK)
            if len(item) == 1 and not item[0].known:
                # All of it is hidden: the name at hand says more than what it was made of.
                pieces.append(self._hidden(part))
            else:
                pieces.extend(_Piece(chunk.used_at(places), kind) for chunk in item)
            if not item and part.quoted:
                pieces.append(_Piece(Chunk("", places), "quoted"))
        return pieces

    def _default(self, part: Parameter) -> list[_Piece]:
        pieces = self._argument(part)
        if part.operator not in (":=", "="):
            return pieces
        value = self._joined(pieces)
        place = self.text.places(part.start, part.end)[-1]
        self.state.assign(part.name, value, place)
        return self._insert(part, value)

    def _argument(self, part: Parameter) -> list[_Piece]:
        """The other side of an operator; outside quotes it is split like any expansion."""
        return [
            piece._replace(kind="expanded") if piece.kind == "written" else piece
            for piece in self._pieces(part.argument)
        ]

    def _content(self, part: Parameter) -> Variable | None:
        """The variable; ``unset`` for one that nobody sets, None where it cannot be known."""
        name, state = part.name, self.state
        given = state.positionals
        if state.more_positionals and name in ("@", "*", "#"):
            return None
        if name in ("@", "*"):
            if given is None:
                return Variable(None, unset=True) if part.operator or self.by_itself else None
            return Variable(Array(given))
        if name == "#":
            if given is None and not self.by_itself:
                return None
            place = self.text.places(part.start, part.end)
            return Variable((Chunk(str(len(given or ())), place),))
        if name.isdecimal():
            at = int(name) if len(name) < 4 else 0
            if at == 0:
                return None
            if given is not None and at <= len(given):
                return Variable(given[at - 1])
            if state.more_positionals:
                return None
            by_itself = given is not None or part.operator or self.by_itself
            return Variable(None, unset=True) if by_itself else None
        if not name.isidentifier() or (name in _ALWAYS_SET and name not in state.variables):
            return None
        variable = state.variables.get(name)
        if variable is None:
            empty = (part.operator or self.by_itself) and not state.foreign
            return Variable(None, unset=True) if empty else None
        return variable if variable.content is not None or variable.unset else None

    def _is_empty(self, variable: Variable | None, *, colon: bool) -> bool | None:
        """Whether ``:-`` (or, without ``colon``, ``-``) takes its other side."""
        if variable is None:
            return None
        if variable.unset:
            return True
        content = variable.content
        if isinstance(content, Array):
            if not content.items:
                return True if content.counted else None
            content = content.items[0]
        if content is None:
            return None
        self.inserted += len(content)
        if not colon or any(chunk.known and chunk.text for chunk in content):
            return False
        return True if is_known(content) else None

    def _length(self, part: Parameter) -> int | None:
        if part.name == "#":
            return None
        found = self._content(part._replace(operator=""))
        if found is None or found.content is None or part.operator:
            return None
        content = found.content
        if found.unset:
            return 0
        if part.subscript in ("@", "*") or part.name in ("@", "*"):
            if isinstance(content, Array):
                return len(content.items) if content.counted else None
            return 1
        single = _item(content, part.subscript)
        if single is None:
            return None
        self.inserted += len(single)
        return len(text_of(single)) if is_known(single) else None

    def _joined(self, pieces: list[_Piece]) -> Value:
        """The pieces as one value; a tilde at its start is not known."""
        chunks: list[Chunk] = []
        for piece in pieces:
            chunk = piece.chunk
            if piece.kind == "break":
                chunk = Chunk(" ", chunks[-1].places if chunks else (Span(0, 0),))
            elif piece.kind == "written" and not chunks and chunk.text.startswith("~"):
                chunk = chunk._replace(known=False)
            if chunk.text:
                chunks.append(chunk)
        return tuple(chunks)

    def _split(self, pieces: list[_Piece]) -> list[tuple[Value, bool]]:
        """The fields that a word becomes, and whether each is surely one.

        Expansions outside quotes are split at blanks.
        """
        fields: list[tuple[Value, bool]] = []
        current: list[Chunk] | None = None
        doubtful = False
        single = True

        def end() -> None:
            nonlocal current, doubtful, single
            if current is not None:
                hidden = [chunk._replace(known=False) for chunk in current]
                fields.append((tuple(hidden if doubtful else current), single and not doubtful))
            current, doubtful, single = None, False, True

        empty = any(piece.kind == "nothing" for piece in pieces)
        if empty and not any(piece.chunk.text for piece in pieces):
            return []
        for chunk, kind in pieces:
            if kind == "break":
                end()
            elif kind == "nothing":
                continue
            elif kind == "quoted":
                current = current if current is not None else []
                current.append(chunk)
            elif kind == "written" or not chunk.known:
                doubtful = doubtful or _may_match(chunk, first=current is None, kind=kind)
                single = single and chunk.known
                current = current if current is not None else []
                current.append(chunk)
            elif "IFS" in self.state.variables:
                # Split at other characters, or not at all.
                single = False
                current = current if current is not None else []
                current.append(chunk._replace(known=False))
            else:
                for found in _FIELDS.finditer(chunk.text):
                    if found[0].isspace():
                        end()
                        continue
                    run = chunk.slice(*found.span())
                    doubtful = doubtful or _may_match(run, first=False, kind=kind)
                    current = current if current is not None else []
                    current.append(run)
        end()
        return fields


def _all_items(part: Parameter) -> bool:
    """Whether even in quotes every item is a word of its own."""
    return "@" in (part.name, part.subscript)


def _chains(value: Value) -> tuple[tuple[Span, ...], ...]:
    """The places of the chunks; empty ones only count where there are no others."""
    return tuple(c.places for c in value if c.text) or tuple(c.places for c in value)


def _item(content: Content, subscript: str) -> Value | None:
    """One item of an array, or the value of another variable."""
    if not isinstance(content, Array):
        return content if subscript in ("", "0") else None
    at = int(subscript) if subscript.isdecimal() and len(subscript) < 6 else 0
    if subscript not in ("", "0") and not subscript.isdecimal():
        return None
    if not content.counted and at > 0:
        return None
    return content.items[at] if at < len(content.items) else ()


def _may_match(chunk: Chunk, *, first: bool, kind: str) -> bool:
    """Whether the shell may replace a word by the names of files or by several words."""
    if _GLOB.search(chunk.text):
        return chunk.known
    if kind != "written":
        return False
    braces = any("," in inside or ".." in inside for inside in _BRACES.findall(chunk.text))
    return braces or (first and chunk.text.startswith("~"))


def placed_words(fields: Sequence[Field]) -> tuple[Word, ...]:
    """The words of a command, each at the outermost place that it shares with no other word.

    ``--lr $LR`` stands where it is written; the words of ``$OPTIONS`` share that place, and so
    each of them stands where it is written in the value of ``OPTIONS``.
    """
    levels = [hulls(field.chains) for field in fields]
    spans: list[Span | None] = [None] * len(fields)
    for level in range(max(map(len, levels), default=0)):
        here = [
            span or places[min(level, len(places) - 1)]
            for span, places in zip(spans, levels, strict=True)
        ]
        for at in _apart(here):
            if spans[at] is None:
                spans[at] = here[at]
        if None not in spans:
            break
    return tuple(
        Word(text_of(field.chunks), span or places[0], is_known(field.chunks))
        for field, span, places in zip(fields, spans, levels, strict=True)
    )


def _apart(spans: Sequence[Span]) -> list[int]:
    """Which spans overlap no other one."""
    order = sorted(range(len(spans)), key=lambda at: spans[at])
    starts = [spans[at].start for at in order]
    shared = {span for span, times in Counter(spans).items() if times > 1}
    found: list[int] = []
    furthest = -1
    for at, following in zip(order, [*starts[1:], None], strict=False):
        span = spans[at]
        before_next = following is None or span.end <= following
        if furthest <= span.start and before_next and span not in shared:
            found.append(at)
        furthest = max(furthest, span.end)
    return found
