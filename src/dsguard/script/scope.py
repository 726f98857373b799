"""Names and what they stand for at one point of a run."""

from __future__ import annotations

import ast
from functools import partial, reduce
from typing import TYPE_CHECKING

from dsguard.script.declaration import Constant, Unreadable
from dsguard.script.loop.values import Derived
from dsguard.script.objects import (
    App,
    Class,
    External,
    Function,
    Instance,
    Namespace,
    Parser,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dsguard.script.module import LocalModule

Names = dict[str, Value]
Part = dict[str, "Value | None"]

_DEFINITIONS = (External, Function, Class, App, Parser, Namespace, Instance)


class Scope:
    """The names of a module, function, class body or comprehension.

    ``module`` is the module whose text stands here. Names that are not found in the scope
    are looked for in those around it, then among Python's builtins.
    """

    def __init__(self, module: LocalModule, outer: Scope | None = None) -> None:
        self.module = module
        self.outer = outer
        self.names: Names = {}

    def find(self, name: str) -> Value | None:
        """What a name stands for, None where nothing binds it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                value = scope.names[name]
                if isinstance(value, Constant) and name in self.module.shared_names:
                    return Unreadable(f"functions of the script change {name}")
                return value
            scope = scope.outer
        return None

    def argument_of(self, node: ast.expr) -> str | None:
        """The ``name`` of ``args.name`` or of a part of it; None for anything else."""
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                return node.attr if isinstance(self.find(node.value.id), Namespace) else None
            node = node.value
        return None

    def bind(self, name: str, value: Value) -> None:
        """Give a name a value."""
        self.names[name] = value

    def part(self, of: Iterable[str]) -> Part:
        """What some names stand for here, None for those that are not bound."""
        return {name: self.names.get(name) for name in of}

    def restore(self, part: Part) -> None:
        """Have names stand for what they stood for once."""
        for name, value in part.items():
            if value is None:
                self.names.pop(name, None)
            else:
                self.names[name] = value

    def join(self, outcomes: Sequence[Part]) -> None:
        """Go on after one of several branches was taken, nobody knows which.

        Each one left other values of the names that it stores; all others are as they are here.
        """
        stored: dict[str, list[tuple[int, Value | None]]] = {}
        for number, outcome in enumerate(outcomes):
            for name, value in outcome.items():
                stored.setdefault(name, []).append((number, value))
        part: Part = {}
        for name, values in stored.items():
            here, after = self.names.get(name), -1
            left: list[Value | None] = []
            for number, value in values:
                left += [*_beside(here, number - after - 1), value]
                after = number
            left += _beside(here, len(outcomes) - after - 1)
            part[name] = reduce(partial(_either, name), left)
        self.restore(part)


def stored_names(nodes: list[ast.stmt]) -> Iterator[str]:
    """Every name that statements give a value, anywhere within them."""
    for statement in nodes:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                yield node.id
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield node.name
            elif isinstance(node, ast.alias):
                yield (node.asname or node.name).partition(".")[0]
            elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
                if node.name:
                    yield node.name
            elif isinstance(node, ast.MatchMapping) and node.rest:
                yield node.rest


def _beside(here: Value | None, branches: int) -> list[Value | None]:
    """What branches that do not store a name leave of it; more than two of them change nothing."""
    return [here] * min(branches, 2)


def _either(name: str, one: Value | None, other: Value | None) -> Value | None:
    if one == other:
        return one
    if isinstance(one, Derived) and isinstance(other, Derived):
        divisions = max(one.divisions, other.divisions, key=len)
        return Derived(one.engines | other.engines, divisions, one.is_sum or other.is_sum)
    candidates = [v for v in (one, other) if isinstance(v, _DEFINITIONS)]
    if len(candidates) == 1:
        return candidates[0]
    return Unreadable(f"{name} is set under a condition")
