"""The syntax tree of a shell text.

Positions are offsets in the text that was parsed. Source of the grammar: POSIX.1-2017, Shell
Command Language, section 2.10, and the Bash Reference Manual, chapter 3.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from msgspec import Struct


class Literal(NamedTuple):
    """Characters that stand for themselves, after unquoting."""

    start: int
    end: int
    quoted: bool
    text: str


class Parameter(NamedTuple):
    """``$name`` or ``${name[subscript]operator argument}``; ``length`` for ``${#name}``."""

    start: int
    end: int
    quoted: bool
    name: str
    subscript: str = ""
    operator: str = ""
    argument: tuple[Part, ...] = ()
    length: bool = False


class Arithmetic(NamedTuple):
    """``$((...))``; the parts are those of the expression."""

    start: int
    end: int
    quoted: bool
    parts: tuple[Part, ...]


class Hidden(NamedTuple):
    """What only a running shell could know: ``$(...)``, backticks, ``<(...)``, ``${!name}``.

    ``commands`` are those that it runs; of backticks they are not parsed.
    """

    start: int
    end: int
    quoted: bool
    commands: Block = ()


Part: TypeAlias = Literal | Parameter | Arithmetic | Hidden


class RawWord(NamedTuple):
    """One word as written."""

    start: int
    end: int
    parts: tuple[Part, ...]

    @property
    def plain(self) -> str:
        """The word where it is one unquoted literal, else nothing."""
        if len(self.parts) != 1 or not isinstance(self.parts[0], Literal) or self.parts[0].quoted:
            return ""
        return self.parts[0].text


class Assignment(NamedTuple):
    """``name=value``, ``name+=value`` or ``name=(values)``; ``indexed`` for ``name[i]=value``."""

    start: int
    end: int
    name: str
    append: bool
    indexed: bool
    value: RawWord | None
    items: tuple[RawWord, ...] | None


class HereDocument(Struct, eq=False):
    """The lines behind ``<<`` up to the delimiter; with ``tabs`` (``<<-``) their tabs do not count.

    Nothing in a ``quoted`` one is expanded. ``start`` and ``end`` are set where the parser gets to
    its lines, which is behind the command that it belongs to.
    """

    delimiter: str
    tabs: bool
    quoted: bool
    start: int = 0
    end: int = 0


class Simple(Struct, frozen=True):
    """A simple command: its words, with assignments before them or, for ``export``, among them.

    ``here`` is the word behind ``<<<``, ``documents`` stand behind ``<<``; ``targets`` are the
    words behind all other redirections, and ``outputs`` those of them that are written to.
    """

    start: int
    end: int
    assignments: tuple[Assignment, ...]
    words: tuple[RawWord, ...]
    here: RawWord | None
    documents: tuple[HereDocument, ...] = ()
    targets: tuple[RawWord, ...] = ()
    outputs: tuple[RawWord, ...] = ()


class Pipeline(Struct, frozen=True):
    """Two or more commands, each in a shell of its own."""

    commands: tuple[Node, ...]


class Chain(Struct, frozen=True):
    """Commands joined by ``&&`` and ``||``; ``joints[i]`` stands before ``commands[i + 1]``."""

    commands: tuple[Node, ...]
    joints: tuple[str, ...]
    background: bool


class Group(Struct, frozen=True):
    """``{ ...; }``, or ``( ... )`` in a shell of its own."""

    body: Block
    subshell: bool


class If(Struct, frozen=True):
    """``if``: conditions with their bodies, and what ``else`` does."""

    branches: tuple[tuple[Block, Block], ...]
    otherwise: Block | None


class Loop(Struct, frozen=True):
    """``for``, ``select``, ``while`` and ``until``; the last two have a condition, no name."""

    body: Block
    condition: Block = ()
    name: str = ""
    words: tuple[RawWord, ...] | None = None


class Case(Struct, frozen=True):
    """``case``: the arms with their patterns; ``falls`` where one arm goes on with the next."""

    word: RawWord
    arms: tuple[tuple[tuple[RawWord, ...], Block], ...]
    falls: bool

    @property
    def complete(self) -> bool:
        """Whether an arm takes everything."""
        return any(word.plain == "*" for patterns, _ in self.arms for word in patterns)


class Function(Struct, frozen=True):
    """A function definition."""

    name: str
    body: Node


class Test(Struct, frozen=True):
    """``[[ ... ]]``: its words; none where it is more than one comparison."""

    words: tuple[RawWord, ...]


class Negation(Struct, frozen=True):
    """``! command``."""

    command: Node


class Redirected(Struct, frozen=True):
    """A compound command whose output goes into ``outputs``: ``{ ...; } > file``."""

    command: Node
    outputs: tuple[RawWord, ...]


class Calculation(Struct, frozen=True):
    """``((...))``: the expression."""

    text: str


Node: TypeAlias = (
    Simple
    | Pipeline
    | Chain
    | Group
    | If
    | Loop
    | Case
    | Function
    | Test
    | Negation
    | Redirected
    | Calculation
)
Block: TypeAlias = tuple[Chain, ...]
