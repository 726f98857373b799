"""From what an expression stands for to what can be said of a default."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dsguard.script import constants
from dsguard.script.declaration import Constant, Default, FromArgument, Unreadable
from dsguard.script.objects import COMPUTED, Class, External, Function, Value, constant_of

if TYPE_CHECKING:
    from dsguard.script.module import LocalModule

_SUPPRESS = "==SUPPRESS=="
_UNCONVERTED = frozenset({None, "str", "Literal", "Choice"})


def written(value: Value, node: ast.AST, module: LocalModule) -> Constant | Unreadable:
    """A value as a constant, or why it is none; ``node`` is the expression it was."""
    constant = constant_of(value)
    if constant is not None:
        return constant
    if isinstance(value, FromArgument):
        return Unreadable(f"it is the value of the argument {value.name}")
    if isinstance(value, Unreadable) and value != COMPUTED:
        return value
    return Unreadable(f"`{module.places.excerpt(node)}` is only known when the script runs")


def as_parsed(default: Default, type_name: str | None) -> Default:
    """A default as the parser hands it on: a text goes through the argument's type.

    Source: Python's ``argparse`` documentation, "default". Click converts as well.
    """
    if not isinstance(default, Constant):
        return default
    if default.value == _SUPPRESS:
        return None
    if not isinstance(default.value, str) or type_name in _UNCONVERTED:
        return default
    converted = constants.converted(type_name or "", default.value)
    return converted or Unreadable(f"the text {default.value!r} goes through type={type_name}")


def type_name(value: Value, node: ast.AST, module: LocalModule) -> str:
    """How a conversion is called in a message: ``int``, ``Path``, the function's name."""
    if isinstance(value, External):
        return value.last
    if isinstance(value, (Function, Class)):
        return value.node.name
    return "lambda" if isinstance(node, ast.Lambda) else module.places.excerpt(node)
