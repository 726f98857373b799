"""The fields of a dataclass of the script, with what it inherits.

Source: Python's ``dataclasses`` documentation, "Inheritance": fields come in the order of the
bases, a later definition replaces the earlier one in its place, and only annotations of
classes that are decorated count.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from dsguard.script.annotations import Shape, shape_of
from dsguard.script.declaration import Constant, Unreadable
from dsguard.script.objects import Class, External, constant_of
from dsguard.script.setups import framework_of
from dsguard.script.training_arguments import TRAINING_ARGUMENTS_NAMES
from dsguard.script.written import written

if TYPE_CHECKING:
    from dsguard.script.expressions import Expressions
    from dsguard.script.module import LocalModule
    from dsguard.script.scope import Scope

_PLAIN_BASES = frozenset({"object", "ABC", "Generic", "Protocol"})
_NO_FIELDS = frozenset({"ClassVar", "InitVar", "KW_ONLY"})
_FIELD_MAKERS = frozenset({"field", "HfArg"})
_EMPTY = {"list": list, "dict": dict, "tuple": tuple}


class Field(Struct, frozen=True):
    """One field that the constructor takes.

    ``default`` is None where the field has none. ``is_made`` says that it comes from
    ``default_factory``. ``aliases`` (further flags) and ``choices`` stand in its metadata.
    """

    name: str
    shape: Shape
    default: Constant | Unreadable | None
    is_made: bool
    aliases: tuple[str, ...]
    choices: tuple[Any, ...] | None
    node: ast.AnnAssign
    module: LocalModule


class Fields(Struct):
    """All fields of a class, the framework class it derives from, and bases that are not read."""

    fields: dict[str, Field] = field(default_factory=dict)
    framework: str | None = None
    unread: list[str] = field(default_factory=list)


def fields_of(of: Class, expressions: Expressions) -> Fields:
    """Collect the fields of a dataclass and its bases."""
    result = Fields()
    for base in reversed(of.lineage()):
        framework = framework_of(base)
        if framework is not None:
            result.framework = framework
            for name in TRAINING_ARGUMENTS_NAMES.intersection(result.fields):
                del result.fields[name]
        elif isinstance(base, Class):
            if base.is_dataclass:
                _add_own(base, expressions, result)
        elif not (isinstance(base, External) and base.last in _PLAIN_BASES):
            name = base.name if isinstance(base, External) else "a base class"
            result.unread.append(f"the fields of {name} are not read")
    return result


def _add_own(of: Class, expressions: Expressions, result: Fields) -> None:
    for statement in of.node.body:
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        shape = shape_of(statement.annotation, of.scope, expressions)
        if shape.name in _NO_FIELDS:
            continue
        name = statement.target.id
        found = _field(name, shape, statement, of.scope, expressions)
        if found is None:
            result.fields.pop(name, None)
        else:
            result.fields[name] = found


def _field(
    name: str, shape: Shape, statement: ast.AnnAssign, scope: Scope, expressions: Expressions
) -> Field | None:
    """The field that one annotation makes; None where ``init=False`` keeps it out."""
    node, module = statement.value, scope.module
    default: Constant | Unreadable | None = None
    is_made = False
    aliases: tuple[str, ...] = ()
    choices: tuple[Any, ...] | None = None
    if isinstance(node, ast.Call) and _makes_field(node, scope, expressions):
        options = {keyword.arg: keyword.value for keyword in node.keywords}
        init = options.get("init")
        if init is not None and constant_of(expressions.evaluate(init, scope)) == Constant(False):
            return None
        if "default" in options:
            default = written(
                expressions.evaluate(options["default"], scope), options["default"], module
            )
        elif "default_factory" in options:
            default, is_made = _made(options["default_factory"], scope, expressions), True
        elif None in options:
            default = Unreadable("its options are computed (**)")
        noted = _metadata(options, scope, expressions)
        aliases = tuple(a for a in noted.get("aliases", ()) if isinstance(a, str))
        choices = noted.get("choices")
    elif node is not None:
        default = written(expressions.evaluate(node, scope), node, module)
    return Field(name, shape, default, is_made, aliases, choices, statement, module)


def _makes_field(node: ast.Call, scope: Scope, expressions: Expressions) -> bool:
    callee = expressions.evaluate(node.func, scope)
    return isinstance(callee, External) and callee.last in _FIELD_MAKERS


def _made(node: ast.expr, scope: Scope, expressions: Expressions) -> Constant | Unreadable:
    """What a ``default_factory`` makes."""
    if isinstance(node, ast.Lambda):
        return written(expressions.evaluate(node.body, scope), node.body, scope.module)
    value = expressions.evaluate(node, scope)
    if isinstance(value, External) and value.library == "builtins" and value.last in _EMPTY:
        return Constant(_EMPTY[value.last]())
    return written(value, node, scope.module)


def _metadata(
    options: dict[str | None, ast.expr], scope: Scope, expressions: Expressions
) -> dict[str, tuple[Any, ...]]:
    """The constant lists under ``aliases`` and ``choices``; HfArg takes the former directly."""
    nodes = {"aliases": options["aliases"]} if "aliases" in options else {}
    metadata = options.get("metadata")
    if isinstance(metadata, ast.Dict):
        for key, value in zip(metadata.keys, metadata.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in ("aliases", "choices"):
                nodes[key.value] = value
    found: dict[str, tuple[Any, ...]] = {}
    for name, node in nodes.items():
        constant = constant_of(expressions.evaluate(node, scope))
        if constant is not None and isinstance(constant.value, str):
            found[name] = (constant.value,)
        elif constant is not None and isinstance(constant.value, (list, tuple)):
            found[name] = tuple(constant.value)
    return found
