"""Type annotations, as far as parsers make something of them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from dsguard.script.declaration import Constant
from dsguard.script.objects import Class, External

if TYPE_CHECKING:
    from dsguard.script.expressions import Expressions
    from dsguard.script.scope import Scope

_DEEPEST = 16


class Shape(Struct, frozen=True):
    """An annotation: ``int``, ``list`` of ``str``, ``Union`` of members, ``Literal`` values.

    ``metadata`` are the further members of ``Annotated``. ``choices`` are the values of a
    ``Literal`` or of an Enum class of the script.
    """

    name: str
    members: tuple[Shape, ...] = ()
    choices: tuple[Any, ...] | None = None
    metadata: tuple[ast.expr, ...] = ()

    def without_none(self) -> Shape:
        """``Optional[X]`` as ``X``; anything else as it is."""
        rest = tuple(member for member in self.members if member.name != "None")
        if self.name != "Union" or len(rest) == len(self.members):
            return self
        return rest[0] if len(rest) == 1 else Shape("Union", rest)


def shape_of(node: ast.expr, scope: Scope, expressions: Expressions, depth: int = 0) -> Shape:
    """Read an annotation, quoted or not."""
    if depth > _DEEPEST:
        return Shape("Any")

    def inner(child: ast.expr) -> Shape:
        return shape_of(child, scope, expressions, depth + 1)

    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            quoted = _parsed(node.value)
            return inner(quoted) if quoted is not None else Shape("Any")
        return Shape("None" if node.value is None else "Any")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([inner(node.left), inner(node.right)])
    if isinstance(node, ast.Subscript):
        name = inner(node.value).name
        index = node.slice
        arguments = list(index.elts) if isinstance(index, ast.Tuple) else [index]
        if name == "Literal":
            values = [
                argument.value for argument in arguments if isinstance(argument, ast.Constant)
            ]
            return Shape(name, choices=tuple(values))
        if name == "Annotated" and arguments:
            annotated = inner(arguments[0])
            return Shape(annotated.name, annotated.members, annotated.choices, tuple(arguments[1:]))
        if name == "Optional":
            return _union([inner(arguments[0]), Shape("None")])
        if name == "Union":
            return _union([inner(argument) for argument in arguments])
        return Shape(name, tuple(inner(argument) for argument in arguments))
    if isinstance(node, (ast.Name, ast.Attribute)):
        value = expressions.evaluate(node, scope)
        if isinstance(value, External):
            last = value.last
            plain = {"List": "list", "Tuple": "tuple", "Dict": "dict"}.get(last, last)
            return Shape(plain)
        if isinstance(value, Class):
            return Shape(value.node.name, choices=_enum_values(value, expressions))
        return Shape(node.attr if isinstance(node, ast.Attribute) else node.id)
    return Shape("Any")


def _union(shapes: list[Shape]) -> Shape:
    members: list[Shape] = []
    for shape in shapes:
        for member in shape.members if shape.name == "Union" else (shape,):
            if member not in members:
                members.append(member)
    return members[0] if len(members) == 1 else Shape("Union", tuple(members))


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _enum_values(of: Class, expressions: Expressions) -> tuple[Any, ...] | None:
    """The values of an Enum class of the script; None for any other class."""
    if not any(isinstance(base, External) and base.library == "enum" for base in of.lineage()):
        return None
    values = []
    for statement in of.node.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            value = expressions.evaluate(statement.value, of.scope)
            values.append(value.value if isinstance(value, Constant) else None)
    return tuple(values)
