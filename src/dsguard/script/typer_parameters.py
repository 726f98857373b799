"""The parameters of a typer command.

Source: typer's documentation, "CLI Options", "CLI Arguments" and "Boolean CLI Options": a
parameter with a default is an option named with hyphens, one without is positional, and a bool
option gets a ``--no-…`` counterpart unless its flags are spelled out.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from msgspec import Struct

from dsguard.script.annotations import Shape, shape_of
from dsguard.script.declaration import Constant, Declaration, Default, Takes, Unreadable
from dsguard.script.objects import External, Function, text_of
from dsguard.script.written import as_parsed, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.script.expressions import Expressions
    from dsguard.script.scope import Scope

_INFOS = {"typer.Option": True, "typer.Argument": False}


class _Info(Struct, frozen=True):
    """A ``typer.Option(…)`` or ``typer.Argument(…)``; ``leads`` says that it gives the default."""

    call: ast.Call
    is_option: bool
    leads: bool


def typer_declarations(function: Function, expressions: Expressions) -> Iterator[Declaration]:
    """What the parameters of a command declare, in order."""
    spec = function.node.args
    positional = [*spec.posonlyargs, *spec.args]
    first = len(positional) - len(spec.defaults)
    defaults: list[ast.expr | None] = [*([None] * first), *spec.defaults, *spec.kw_defaults]
    for parameter, default in zip([*positional, *spec.kwonlyargs], defaults, strict=True):
        declaration = _parameter(parameter, default, function.scope, expressions)
        if declaration is not None:
            yield declaration


def _parameter(
    parameter: ast.arg, written_default: ast.expr | None, scope: Scope, expressions: Expressions
) -> Declaration | None:
    shape = Shape("str")
    if parameter.annotation is not None:
        shape = shape_of(parameter.annotation, scope, expressions)
    if shape.name == "Context":
        return None
    info = _info(shape, written_default, scope, expressions)
    default, is_required = _default(info, written_default, scope, expressions)
    plain = shape.without_none()
    is_option = info.is_option if info else not is_required
    is_many = plain.name in ("list", "tuple")
    kind = plain.members[0].name if is_many and plain.members else plain.name
    flags: tuple[str, ...] = ()
    negated: tuple[str, ...] = ()
    if is_option:
        flags, negated = _flags(parameter.arg, info, kind, scope, expressions)
    is_switch = is_option and kind == "bool"
    takes = Takes.ONE
    if is_switch:
        takes = Takes.NOTHING
    elif plain.name == "tuple" or (is_many and not is_option):
        takes = Takes.MANY
    return Declaration(
        name=parameter.arg,
        flags=flags,
        default=as_parsed(default, None if plain.choices is not None or is_many else kind),
        location=scope.module.locate(parameter),
        type_name=kind,
        takes=takes,
        alone=Constant(True) if is_switch else None,
        negated=negated,
        choices=plain.choices,
        required=is_required,
    )


def _info(
    shape: Shape, default: ast.expr | None, scope: Scope, expressions: Expressions
) -> _Info | None:
    for node, leads in [(default, True), *((extra, False) for extra in shape.metadata)]:
        if isinstance(node, ast.Call):
            callee = expressions.evaluate(node.func, scope)
            if isinstance(callee, External) and callee.name in _INFOS:
                return _Info(node, _INFOS[callee.name], leads)
    return None


def _default(
    info: _Info | None, node: ast.expr | None, scope: Scope, expressions: Expressions
) -> tuple[Default, bool]:
    """The default of a parameter, and whether a value has to be given."""
    if info is not None:
        options = {keyword.arg: keyword.value for keyword in info.call.keywords}
        if None in options:
            return Unreadable("its options are computed (**)"), False
        if "envvar" in options:
            return Unreadable("an environment variable may set it"), False
        if "default_factory" in options:
            made = options["default_factory"]
            return Unreadable(f"`{scope.module.places.excerpt(made)}` makes it"), False
        if info.leads:
            node = options.get("default", info.call.args[0] if info.call.args else None)
    if node is None:
        return None, True
    value = expressions.evaluate(node, scope)
    if value == Constant(...):
        return None, True
    return written(value, node, scope.module), False


def _flags(
    name: str, info: _Info | None, kind: str, scope: Scope, expressions: Expressions
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """All flags of an option, and those that negate it."""
    spelled: list[str] = []
    if info is not None:
        for node in info.call.args[1 if info.leads else 0 :]:
            text = text_of(expressions.evaluate(node, scope))
            if text is not None and text.startswith("-"):
                spelled.append(text)
    if not spelled:
        flag = "--" + name.replace("_", "-")
        negative = f"--no-{flag[2:]}"
        return ((flag, negative), (negative,)) if kind == "bool" else ((flag,), ())
    pairs = [text.partition("/") for text in spelled]
    positive = tuple(p.strip() for p, _, _ in pairs if p.strip())
    negated = tuple(n.strip() for _, _, n in pairs if n.strip())
    return (*positive, *negated), negated
