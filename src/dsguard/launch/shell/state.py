"""What is known of a shell at one place of a script: its variables and its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from dsguard.launch.shell.text import Text, Value, is_known, text_of
from dsguard.model.source import Span

if TYPE_CHECKING:
    from dsguard.launch.shell.syntax import Node

_NOWHERE = Span(0, 0)
_LARGEST = 1 << 16
_MOST_CHUNKS = 1 << 12
"""A value of more characters or chunks is not kept: nobody passes that much to a launcher."""


class Array(NamedTuple):
    """An array; ``counted`` is False where only a running shell knows how many items it has."""

    items: tuple[Value, ...]
    counted: bool = True


Content: TypeAlias = "Value | Array | None"
"""The content of a variable; None where only a running shell knows it."""


class Variable(Struct, frozen=True):
    """A variable that the script assigns, unsets or may have changed.

    ``exported`` is None where only some branches export it; ``place`` is the assignment that gave
    it its content.
    """

    content: Content
    exported: bool | None = False
    unset: bool = False
    place: Span = _NOWHERE

    def same(self, other: Variable | None) -> bool:
        """Whether both surely hold the same."""
        if other is None or self.unset != other.unset:
            return False
        if self.content is other.content:
            return True
        mine, theirs = _items(self.content), _items(other.content)
        if mine is None or theirs is None:
            return mine is theirs
        if not all(is_known(value) for value in (*mine, *theirs)):
            return self.content == other.content
        return type(self.content) is type(other.content) and [text_of(v) for v in mine] == [
            text_of(v) for v in theirs
        ]


def _items(content: Content) -> tuple[Value, ...] | None:
    if content is None:
        return None
    return content.items if isinstance(content, Array) else (content,)


class Definition(NamedTuple):
    """A function: its body, and the text that the body was parsed from."""

    body: Node
    text: Text


class State(Struct):
    """A shell between two commands.

    ``folder`` is where it stands, relative to where the script was started; None where that
    is not known. ``functions`` are those that are surely defined. ``positionals`` are ``$1`` and so
    on, None for those of the script itself, which is judged without; with ``more_positionals``
    there may be others behind them.
    ``foreign`` says that code in sight of nobody ran here and may have set any variable that the
    script does not. ``ended`` says that nothing after this place runs.
    """

    variables: dict[str, Variable] = field(default_factory=dict)
    folder: str | None = ""
    functions: dict[str, Definition] = field(default_factory=dict)
    positionals: tuple[Value, ...] | None = None
    more_positionals: bool = False
    foreign: bool = False
    exports_all: bool = False
    ended: bool = False

    def copy(self) -> State:
        """The same state for a branch or a subshell."""
        return replace(self, variables=dict(self.variables), functions=dict(self.functions))

    def become(self, other: State) -> None:
        """Go on as another state."""
        copy = other.copy()
        for name in self.__struct_fields__:
            setattr(self, name, getattr(copy, name))

    def assign(self, name: str, content: Content, place: Span, *, export: bool = False) -> None:
        """Give a variable its content."""
        if content is not None and _too_large(content):
            content = None
        before = self.variables.get(name)
        exported = before.exported if before is not None else False
        if export or self.exports_all:
            exported = True
        self.variables[name] = Variable(content, exported, place=place)

    def forget(self, name: str) -> None:
        """Something unknown was assigned to a variable."""
        before = self.variables.get(name)
        self.variables[name] = replace(before or Variable(None), content=None, unset=False)

    def child(self) -> State:
        """What a program started from here inherits: only exported variables."""
        inherited = {
            name: v if v.exported and not isinstance(v.content, Array) else Variable(None)
            for name, v in self.variables.items()
        }
        return State(inherited, self.folder, more_positionals=True, foreign=self.foreign)


def merged(first: State, second: State) -> State:
    """What is known after two branches, of which either may have run."""
    if first.ended:
        return second
    if second.ended:
        return first
    variables: dict[str, Variable] = {}
    for name in {**first.variables, **second.variables}:
        one, other = first.variables.get(name), second.variables.get(name)
        known = one or other
        assert known is not None
        exported = _common([v.exported if v is not None else False for v in (one, other)])
        if one is not None and one.same(other):
            variables[name] = replace(one, exported=exported)
        else:
            variables[name] = Variable(None, exported, place=known.place)
    given = first.positionals
    same = given is second.positionals or given == second.positionals
    return State(
        variables,
        first.folder if first.folder == second.folder else None,
        {n: f for n, f in first.functions.items() if second.functions.get(n) is f},
        first.positionals if same else (),
        first.more_positionals or second.more_positionals or not same,
        first.foreign or second.foreign,
        first.exports_all or second.exports_all,
    )


def _common(flags: list[bool | None]) -> bool | None:
    return flags[0] if flags[0] == flags[1] else None


def _too_large(content: Value | Array) -> bool:
    values = _items(content) or ()
    if sum(map(len, values)) > _MOST_CHUNKS:
        return True
    return sum([len(chunk.text) for value in values for chunk in value]) > _LARGEST
