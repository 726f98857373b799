"""What names in a script can stand for, as far as dsguard follows them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct, field

from dsguard.script.declaration import Constant, Default, FromArgument, Unreadable
from dsguard.script.declarations import Declarations
from dsguard.script.loop.values import Dict, Tracked

if TYPE_CHECKING:
    from dsguard.script.module import LocalModule
    from dsguard.script.scope import Scope
    from dsguard.script.script import ParserKind


class External(Struct, frozen=True):
    """Something of a library, by its dotted name: ``argparse.ArgumentParser``."""

    name: str

    @property
    def library(self) -> str:
        """The top-level package."""
        return self.name.partition(".")[0]

    @property
    def last(self) -> str:
        """The name without its module."""
        return self.name.rpartition(".")[2]


class Items(Struct, frozen=True):
    """A tuple or list written out, of which some members are no constants."""

    members: tuple[Value, ...]


class Function(Struct, eq=False):
    """A function of the script; ``bound`` is the object or class it is a method of."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    scope: Scope
    bound: Value | None = None


class Class(Struct, eq=False):
    """A class of the script.

    ``bases`` are what its base expressions stand for; ``attributes`` is what its body sets, as
    far as it was asked for.
    """

    node: ast.ClassDef
    scope: Scope
    bases: tuple[Value, ...]
    attributes: dict[str, Value] = field(default_factory=dict)

    @property
    def is_dataclass(self) -> bool:
        """Whether ``@dataclass`` makes its own annotations fields."""
        for decorator in self.node.decorator_list:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
            if name == "dataclass":
                return True
        return False

    def lineage(self) -> tuple[Value, ...]:
        """The class and what it derives from, the order in which Python looks names up.

        Of a base that is reached twice the last place counts, as in Python's method
        resolution order of the hierarchies that occur.
        """
        found: list[Value] = []
        pending: list[Value] = [self]
        while pending and len(found) < _MOST_BASES:
            value = pending.pop(0)
            found.append(value)
            if isinstance(value, Class):
                pending[:0] = value.bases
        return tuple(v for i, v in enumerate(found) if v not in found[i + 1 :])

    def derives_from(self, *names: str) -> bool:
        """Whether one of these library classes is among its bases."""
        return any(isinstance(v, External) and v.name in names for v in self.lineage())


class Instance(Struct, eq=False):
    """An object of a class of the script."""

    of: Class
    attributes: dict[str, Value] = field(default_factory=dict)


class Parser(Struct, eq=False):
    """An argparse parser or one of its groups, while the script fills it.

    ``reads_command_line`` is None until something is parsed; ``defaults`` are what
    ``set_defaults`` gave; ``of`` is the class of the script it is an object of;
    ``detached`` parsers (subcommands) are left alone.
    """

    kind: ParserKind
    declarations: Declarations = field(default_factory=Declarations)
    defaults: dict[str, Default] = field(default_factory=dict)
    argument_default: Default = None
    abbreviations: bool = True
    resolves_conflicts: bool = False
    framework: str | None = None
    config_flag: str | None = None
    reads_command_line: bool | None = None
    of: Class | None = None
    detached: bool = False


class Namespace(Struct, frozen=True):
    """What parsing gives: an attribute of it is the value of an argument."""

    parser: Parser


class Method(Struct, frozen=True):
    """A method of an object that dsguard knows, not yet called."""

    receiver: Parser | App
    name: str


class App(Struct, eq=False):
    """A ``typer.Typer()`` or a click group, which collects commands."""

    kind: ParserKind


Value: TypeAlias = (
    "Constant | Unreadable | FromArgument | External | Items | LocalModule | Function | Class"
    " | Instance | Parser | Namespace | Method | App | Tracked"
)

COMPUTED = Unreadable("it is only known when the script runs")
"""Any value that is not followed."""

_MOST_BASES = 64
LONGEST_NAME = 1000
"""A dotted name that is longer is followed no further: each of its parts is another text."""


def constant_of(value: Value | None) -> Constant | None:
    """A value as one constant, where all of it is."""
    if isinstance(value, Constant):
        return value
    if isinstance(value, External) and value.name == "argparse.SUPPRESS":
        return Constant("==SUPPRESS==")
    if isinstance(value, Dict) and not value.kept and value.is_whole:
        constants = {key: constant_of(entry.value) for key, entry in value.entries.items()}
        if all(constants.values()):
            return Constant({key: one.value for key, one in constants.items() if one})
    return None


def text_of(value: Value | None) -> str | None:
    """A constant string, or None."""
    constant = constant_of(value)
    return constant.value if constant and isinstance(constant.value, str) else None


def members_of(value: Value | None) -> tuple[Value, ...] | None:
    """The members of a tuple or list, or None for anything else."""
    if isinstance(value, Items):
        return value.members
    if isinstance(value, Constant) and isinstance(value.value, (tuple, list)):
        return tuple(Constant(member) for member in value.value)
    return None


def truth(value: Value) -> bool | None:
    """Whether a value counts as true; None where that is not known."""
    if isinstance(value, Constant):
        return bool(value.value)
    if isinstance(value, (Parser, Function, Class)):
        return True
    if isinstance(value, Dict) and not value.kept and value.file is None:
        return bool(value.entries)
    return None


def holds_parser(value: Any) -> bool:
    """Whether something that gets this value can add arguments to a parser."""
    if isinstance(value, Items):
        return any(holds_parser(member) for member in value.members)
    if isinstance(value, Instance):
        return any(isinstance(attribute, Parser) for attribute in value.attributes.values())
    if isinstance(value, Method):
        return isinstance(value.receiver, Parser)
    return isinstance(value, Parser)
