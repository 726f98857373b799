"""``@click.option(…)`` and ``@click.argument(…)``.

Source: click's documentation, "Options" and "Parameters: names" (an identifier names the
value; else the spelling with the most dashes, the first of several).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dsguard.script.declaration import Constant, Declaration, Default, Takes, Unreadable
from dsguard.script.objects import External, Value, constant_of, text_of
from dsguard.script.written import as_parsed, type_name, written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dsguard.script.module import LocalModule

_TYPES = {"INT": "int", "FLOAT": "float", "STRING": "str", "BOOL": "bool", "IntRange": "int"}
_INFERRED = (bool, int, float, str)


def click_option(
    node: ast.Call,
    positional: tuple[Value, ...],
    keywords: Mapping[str, Value],
    module: LocalModule,
) -> Declaration | None:
    """The declaration of one option; None where its name is computed."""
    names = [text_of(value) for value in positional]
    if None in names or not names or any(isinstance(a, ast.Starred) for a in node.args):
        return None
    name, flags, negated = _spellings([n for n in names if n])
    is_flag = constant_of(keywords.get("is_flag"))
    has_flag_value = "flag_value" in keywords
    is_switch = bool(is_flag.value) if is_flag else bool(negated) or has_flag_value
    default, kind, choices = _value(node, keywords, module)
    required = constant_of(keywords.get("required"))
    alone: Default = None
    takes = Takes.MANY if constant_of(keywords.get("nargs")) not in (None, Constant(1)) else None
    if constant_of(keywords.get("count")) == Constant(True):
        is_switch, alone = True, Unreadable("it counts")
        default = default or Constant(0)
    elif is_switch:
        alone = constant_of(keywords.get("flag_value", Constant(True)))
        kind = kind or ("str" if has_flag_value else "bool")
        if default is None and not has_flag_value and not (required and required.value):
            default = Constant(False)
    return Declaration(
        name=name,
        flags=flags,
        default=as_parsed(default, kind),
        location=module.locate(node),
        type_name=kind,
        takes=Takes.NOTHING if is_switch else takes or Takes.ONE,
        alone=alone,
        negated=negated,
        choices=choices,
        required=bool(required and required.value),
    )


def click_argument(
    node: ast.Call,
    positional: tuple[Value, ...],
    keywords: Mapping[str, Value],
    module: LocalModule,
) -> Declaration | None:
    """The declaration of one positional; None where its name is computed."""
    name = text_of(positional[0]) if positional else None
    if name is None:
        return None
    default, kind, choices = _value(node, keywords, module)
    nargs = constant_of(keywords.get("nargs", Constant(1)))
    required = constant_of(keywords.get("required"))
    is_many = nargs != Constant(1)
    return Declaration(
        name=name.replace("-", "_").lower(),
        flags=(),
        default=as_parsed(default, kind),
        location=module.locate(node),
        type_name=kind,
        takes=Takes.MANY if is_many else Takes.ONE,
        choices=choices,
        required=bool(required.value) if required else default is None and nargs != Constant(-1),
    )


def _spellings(names: list[str]) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The name of the value, all flags, and those that negate it."""
    name = ""
    flags: list[str] = []
    negated: list[str] = []
    candidates: list[tuple[int, str]] = []
    for text in names:
        if text.isidentifier():
            name = text
            continue
        positive, _, negative = text.partition(";" if text.startswith("/") else "/")
        for flag, found in ((positive.strip(), flags), (negative.strip(), negated)):
            if flag:
                found.append(flag)
        bare = positive.strip().lstrip("-/")
        candidates.append((len(positive.strip()) - len(bare), bare))
    if not name and candidates:
        name = max(candidates, key=lambda candidate: candidate[0])[1]
        name = name.replace("-", "_").lower()
    return name, (*flags, *negated), tuple(negated)


def _value(
    node: ast.Call, keywords: Mapping[str, Value], module: LocalModule
) -> tuple[Default, str | None, tuple[object, ...] | None]:
    """The default, the name of the type and the choices."""
    nodes = {k.arg: k.value for k in node.keywords if k.arg}
    default: Default = None
    if any(keyword.arg is None for keyword in node.keywords):
        default = Unreadable("its options are computed (**)")
    elif "envvar" in keywords:
        default = Unreadable("an environment variable may set it")
    elif "default" in keywords:
        default = written(keywords["default"], nodes["default"], module)
    if "type" not in keywords:
        value = default.value if isinstance(default, Constant) else None
        kind = type(value).__name__ if isinstance(value, _INFERRED) else None
        return default, kind, None
    of = nodes["type"]
    if isinstance(of, ast.Call) and of.args and isinstance(of.args[0], (ast.List, ast.Tuple)):
        choices = tuple(e.value for e in of.args[0].elts if isinstance(e, ast.Constant))
        return default, "Choice", choices
    value = keywords["type"]
    kind = type_name(value, of.func if isinstance(of, ast.Call) else of, module)
    if isinstance(value, External):
        kind = _TYPES.get(value.last, kind)
    return default, kind, None
