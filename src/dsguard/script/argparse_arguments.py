"""``parser.add_argument(…)`` and ``parser.set_defaults(…)``.

Source: Python's ``argparse`` documentation and ``argparse.py``.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dsguard.script.declaration import Constant, Declaration, Default, Takes, Unreadable
from dsguard.script.objects import (
    External,
    Parser,
    Value,
    constant_of,
    members_of,
    text_of,
)
from dsguard.script.written import as_parsed, type_name, written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dsguard.model.source import Location
    from dsguard.script.module import LocalModule
    from dsguard.script.reading import Reading
    from dsguard.script.script import ParserKind

_SWITCHES = {"store_true": True, "store_false": False}
_SILENT = frozenset({"help"})
_MOST_INHERITED = 20_000
"""How many arguments are taken over from ``parents``, which double with every parser."""


def add_argument(
    parser: Parser,
    node: ast.Call,
    positional: tuple[Value, ...],
    keywords: Mapping[str, Value],
    module: LocalModule,
    reading: Reading,
) -> None:
    """Add what one call declares, or note that it cannot be told."""
    names = [text_of(value) for value in positional]
    is_open = any(isinstance(a, ast.Starred) for a in node.args) or (
        not names and any(k.arg is None for k in node.keywords)
    )
    if is_open or None in names or not (names or "dest" in keywords):
        reading.gap("the name of an argument is computed", module, node)
        return
    flags = tuple(name for name in names if name)
    declaration = _declaration(flags, node, keywords, module, parser)
    if declaration is not None:
        declare(parser, declaration, reading)


def declare(parser: Parser, declaration: Declaration, reading: Reading) -> None:
    """Put a declaration into a parser, in doubt where the run may not come by."""
    if reading.doubt:
        declaration = replace(declaration, default=Unreadable(reading.doubt))
    for flag in parser.declarations.taken(declaration.flags):
        if parser.resolves_conflicts:
            parser.declarations.drop_flag(flag)
        else:
            twice = Unreadable(f"{flag} is declared in more than one place")
            parser.declarations.set_default_of_flag(flag, twice)
            declaration = replace(declaration, default=twice)
    if declaration.name in parser.defaults:
        parser.declarations.drop(declaration.name, _only_default)
    parser.declarations.add(declaration)


def _only_default(declaration: Declaration) -> bool:
    return not declaration.flags and declaration.takes is Takes.NOTHING


def set_defaults(
    parser: Parser,
    node: ast.Call,
    keywords: Mapping[str, Value],
    module: LocalModule,
    reading: Reading,
) -> None:
    """Replace defaults; ``**values`` may replace any of them."""
    if any(keyword.arg is None for keyword in node.keywords):
        unclear = Unreadable("set_defaults replaces defaults by values that are computed")
        parser.argument_default = unclear
        parser.declarations.set_default(lambda _: unclear)
        reading.gap("set_defaults takes its values from elsewhere", module, node)
    for keyword in node.keywords:
        if keyword.arg is None:
            continue
        default: Default = written(keywords[keyword.arg], keyword.value, module)
        if reading.doubt:
            default = Unreadable(f"set_defaults may replace it: {reading.doubt}")
        parser.defaults[keyword.arg] = default
        _replace_default(parser, keyword.arg, default, module.locate(node))


def _replace_default(parser: Parser, name: str, default: Default, location: Location) -> None:
    if parser.declarations.named(name):
        parser.declarations.set_default(lambda d: as_parsed(default, d.type_name), name)
    else:
        parser.declarations.add(Declaration(name, (), default, location, takes=Takes.NOTHING))


def deepspeed_arguments(location: Location) -> tuple[Declaration, ...]:
    """What ``deepspeed.add_config_arguments(parser)`` adds.

    Source: ``deepspeed/__init__.py``, ``_add_core_arguments``.
    """
    found = []
    for name in ("deepspeed", "deepscale"):
        found.append(
            Declaration(
                name,
                (f"--{name}",),
                Constant(False),
                location,
                takes=Takes.NOTHING,
                alone=Constant(True),
            )
        )
        path = f"{name}_config"
        found.append(Declaration(path, (f"--{path}",), Constant(None), location, "str"))
    return tuple(found)


def new_parser(
    kind: ParserKind,
    node: ast.Call,
    keywords: Mapping[str, Value],
    module: LocalModule,
    reading: Reading,
) -> Parser:
    """The parser that ``ArgumentParser(…)`` makes."""
    parser = Parser(kind)
    abbreviations = constant_of(keywords.get("allow_abbrev"))
    parser.abbreviations = abbreviations is None or bool(abbreviations.value)
    parser.resolves_conflicts = text_of(keywords.get("conflict_handler")) == "resolve"
    if "argument_default" in keywords:
        parser.argument_default = as_parsed(
            written(keywords["argument_default"], node, module), None
        )
    parents = keywords.get("parents")
    for parent in members_of(parents) or ():
        if isinstance(parent, Parser):
            reading.inherited += len(parent.declarations)
            if reading.inherited > _MOST_INHERITED:
                reading.gap("parsers have more parents than are followed", module, node)
                break
            parser.declarations.extend(parent.declarations)
            parser.defaults.update(parent.defaults)
        else:
            reading.gap("a parent of the parser could not be read", module, node)
    if parents is not None and members_of(parents) is None:
        reading.gap("the parents of the parser could not be read", module, node)
    if constant_of(keywords.get("fromfile_prefix_chars", Constant(None))) != Constant(None):
        reading.gap("arguments may come from a file (fromfile_prefix_chars)", module, node)
    if text_of(keywords.get("prefix_chars", Constant("-"))) != "-":
        reading.gap("the parser has its own prefix characters", module, node)
    if any(keyword.arg is None for keyword in node.keywords):
        reading.gap("the options of the parser are computed", module, node)
    return reading.add_parser(parser)


def _declaration(
    names: tuple[str, ...],
    node: ast.Call,
    keywords: Mapping[str, Value],
    module: LocalModule,
    parser: Parser,
) -> Declaration | None:
    nodes = {k.arg: k.value for k in node.keywords if k.arg}
    action = text_of(keywords.get("action", Constant("store")))
    custom = keywords.get("action")
    is_optional_boolean = (
        isinstance(custom, External) and custom.name == "argparse.BooleanOptionalAction"
    )
    if action in _SILENT:
        return None
    flags = names if names and names[0].startswith("-") else ()
    name = text_of(keywords.get("dest")) or _destination(names)
    kind = None
    if "type" in keywords:
        kind = type_name(keywords["type"], nodes["type"], module)
    takes, alone = _values(action, is_optional_boolean, keywords)
    negated: tuple[str, ...] = ()
    if is_optional_boolean:
        negated = tuple(f"--no-{flag[2:]}" for flag in flags if flag.startswith("--"))
        flags = tuple(
            spelling
            for flag in flags
            for spelling in ([flag, f"--no-{flag[2:]}"] if flag.startswith("--") else [flag])
        )
    default: Default
    if "default" in keywords:
        default = written(keywords["default"], nodes["default"], module)
    elif any(keyword.arg is None for keyword in node.keywords):
        default = Unreadable("its options are computed (**)")
    elif name in parser.defaults:
        default = parser.defaults[name]
    elif action is None and not is_optional_boolean:
        default = Unreadable("its action is the script's own")
    elif action in _SWITCHES:
        default = parser.argument_default or Constant(not _SWITCHES[action])
    else:
        default = parser.argument_default
    required = constant_of(keywords.get("required"))
    choices = members_of(keywords.get("choices"))
    plain = tuple(c.value for c in choices or () if isinstance(c, Constant))
    return Declaration(
        name=name,
        flags=flags,
        default=as_parsed(default, kind),
        location=module.locate(node),
        type_name=kind,
        takes=takes,
        alone=alone,
        negated=negated,
        choices=plain if choices and len(plain) == len(choices) else None,
        required=bool(required and required.value)
        if flags
        else text_of(keywords.get("nargs")) not in ("?", "*"),
    )


def _destination(names: tuple[str, ...]) -> str:
    if names and not names[0].startswith("-"):
        return names[0]
    long = [name for name in names if name.startswith("--")]
    return (long or list(names) or [""])[0].lstrip("-").replace("-", "_")


def _values(
    action: str | None, is_optional_boolean: bool, keywords: Mapping[str, Value]
) -> tuple[Takes, Default]:
    """How many values follow, and what the flag means without one."""
    if is_optional_boolean:
        return Takes.NOTHING, Constant(True)
    if action in _SWITCHES:
        return Takes.NOTHING, Constant(_SWITCHES[action])
    const = constant_of(keywords.get("const", Constant(None)))
    alone: Default = const or Unreadable("its const= is computed")
    if action in ("store_const", "append_const"):
        return Takes.NOTHING, alone
    if action in ("count", "version"):
        return Takes.NOTHING, Unreadable(f"its action is {action}")
    nargs = constant_of(keywords.get("nargs", Constant(None)))
    if nargs is None or nargs.value is None:
        is_own = action is None and "nargs" not in keywords
        return (
            (Takes.OPTIONAL, Unreadable("its action is the script's own"))
            if is_own
            else (
                Takes.ONE,
                None,
            )
        )
    if nargs.value == "?":
        return Takes.OPTIONAL, alone
    if nargs.value == 0:
        return Takes.NOTHING, Unreadable("its action is the script's own")
    return (Takes.ONE, None) if nargs.value == 1 else (Takes.MANY, None)
