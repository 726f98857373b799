"""Functions that a decorator makes a command of typer or click."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dsguard.script.arguments import Arguments
from dsguard.script.click_options import click_argument, click_option
from dsguard.script.objects import App, External, Function, Method, Value
from dsguard.script.reading import CommandFunction, Reading
from dsguard.script.script import ParserKind
from dsguard.script.typer_parameters import typer_declarations

if TYPE_CHECKING:
    from dsguard.script.declaration import Declaration
    from dsguard.script.expressions import Expressions

_OPTIONS = {"click.option": click_option, "click.argument": click_argument}
_HARMLESS = frozenset({"click", "torch", "functools", "builtins", "contextlib", "typing"})


def read_command(function: Function, expressions: Expressions, reading: Reading) -> Function | App:
    """Note a command, and give what its name stands for afterwards.

    Only the script's own commands count; those of a module it imports are not its command line.
    """
    module = function.scope.module
    made: Function | App = function
    kind: ParserKind | None = None
    declarations: list[Declaration] = []
    unread: list[ast.expr] = []
    for decorator in function.node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        target = expressions.evaluate(call.func if call else decorator, function.scope)
        name = target.name if isinstance(target, External) else ""
        if call is not None and name in _OPTIONS:
            arguments = Arguments.of(call, expressions, function.scope)
            declaration = _OPTIONS[name](call, arguments.positional, arguments.keywords, module)
            if declaration is None:
                reading.gap("the name of an option is computed", module, call)
            else:
                declarations.append(declaration)
        elif name == "click.command" or _is_method(target, ParserKind.CLICK, "command"):
            kind = ParserKind.CLICK
        elif name == "click.group" or _is_method(target, ParserKind.CLICK, "group"):
            made = App(ParserKind.CLICK)
        elif _is_method(target, ParserKind.TYPER, "command"):
            kind = ParserKind.TYPER
        elif _is_method(target, ParserKind.TYPER, "callback"):
            reading.gap("the app has options of its own (callback)", module, decorator)
        else:
            if call is not None:
                expressions.evaluate(call, function.scope)
            if not (isinstance(target, External) and target.library in _HARMLESS):
                unread.append(decorator)
    if not module.is_script or kind is None:
        return made
    if kind is ParserKind.TYPER:
        declarations = list(typer_declarations(function, expressions))
    else:
        for decorator in unread:
            reading.gap("a decorator may add options", module, decorator)
    reading.commands.append(CommandFunction(kind, tuple(declarations)))
    return made


def _is_method(target: Value, kind: ParserKind, name: str) -> bool:
    return (
        isinstance(target, Method)
        and isinstance(target.receiver, App)
        and target.receiver.kind is kind
        and target.name == name
    )
