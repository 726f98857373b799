"""From a text to a :class:`~dsguard.script.script.Script`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dsguard.script.declaration import Declaration, Unreadable
from dsguard.script.interpreter import Interpreter
from dsguard.script.module import LocalModule, attribute_store
from dsguard.script.objects import LONGEST_NAME
from dsguard.script.processes import own_ranks
from dsguard.script.reading import Reading
from dsguard.script.script import READABLE, ParserKind, Script
from dsguard.script.syntax import UnreadableTextError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dsguard.model.source import Location, Source
    from dsguard.script.imports import ModuleFinder
    from dsguard.script.objects import Parser


def read_script(source: Source, find_module: ModuleFinder | None = None) -> Script:
    """Read the arguments and imports of a training script; nothing is imported or run.

    ``find_module`` gives the source of a module by its dotted name, None for modules that are
    not the user's own. Without it, imports are not followed.

    Never raises: a script that cannot be read says so in ``unreadable``.
    """
    try:
        module = LocalModule(source, "__main__", depth=0)
        reading = Reading()
        interpreter = Interpreter(reading, find_module)
        interpreter.follow(module)
        interpreter.follow_rest(module)
        ranks = own_ranks([module, *interpreter.local_modules()])
        return replace(_script(module, reading), ranks=ranks)
    except UnreadableTextError as error:
        return Script(source, unreadable=str(error))
    except RecursionError:
        return Script(source, unreadable="its code is nested too deeply")


def _script(module: LocalModule, reading: Reading) -> Script:
    script = Script(
        source=module.source,
        imports=frozenset(_imports(module)),
        adds_deepspeed_arguments=reading.adds_deepspeed_arguments,
        hands_on_rest=reading.hands_on_rest,
        setups=tuple(reading.setups),
        reassigned=_reassigned(module, reading),
        replaced=frozenset(reading.replaced),
        gaps=tuple(reading.gaps.values()),
        loop=reading.loop.loop(),
    )
    parsers = _parsers(reading)
    if parsers:
        return _with_parsers(script, parsers, reading, module)
    if reading.commands:
        kind = min((c.kind for c in reading.commands), key=READABLE.index)
        if len(reading.commands) > 1:
            reading.gap("the script has subcommands", module, module.tree)
            return replace(script, parser=kind, gaps=tuple(reading.gaps.values()))
        return replace(script, parser=kind, arguments=reading.commands[0].declarations)
    return replace(script, parser=reading.named_only[0] if reading.named_only else None)


def _parsers(reading: Reading) -> list[Parser]:
    """The parsers that get the command line, or all where no parsing is in sight."""
    for parsers in (reading.parsers, reading.unreached):
        if parsers:
            parsing = [p for p in parsers if p.reads_command_line is not None]
            return parsing or parsers
    return []


def _with_parsers(
    script: Script, parsers: list[Parser], reading: Reading, module: LocalModule
) -> Script:
    kind = ParserKind.HF if any(p.kind is ParserKind.HF for p in parsers) else ParserKind.ARGPARSE
    reading_line = [p for p in parsers if p.reads_command_line is not False]
    if not reading_line:
        reading.gap("the parser is given its own words to parse", module, module.tree)
    for other in reading.named_only:
        reading.gap(f"{other.value} may take arguments, too", module, module.tree)
    frameworks = [p.framework for p in reading_line if p.framework]
    return replace(
        script,
        parser=kind,
        arguments=_together(reading_line),
        abbreviations=all(p.abbreviations for p in reading_line),
        framework=frameworks[-1] if frameworks else None,
        config_flag=next((p.config_flag for p in reading_line if p.config_flag), None),
        gaps=tuple(reading.gaps.values()),
    )


def _together(parsers: list[Parser]) -> tuple[Declaration, ...]:
    """The arguments of several parsers of one command line.

    Where two of them give one name different defaults, nobody knows which one is used.
    """
    if len(parsers) == 1:
        return tuple(parsers[0].declarations)
    firsts: dict[str, list[Declaration]] = {}
    for parser in parsers:
        seen: set[str] = set()
        for declaration in parser.declarations:
            if declaration.name not in seen:
                seen.add(declaration.name)
                firsts.setdefault(declaration.name, []).append(declaration)
    result: list[Declaration] = []
    known: set[tuple[str, tuple[str, ...], Location]] = set()
    for parser in parsers:
        for declaration in parser.declarations:
            key = (declaration.name, declaration.flags, declaration.location)
            if key in known:
                continue
            known.add(key)
            defaults = [first.default for first in firsts[declaration.name]]
            if any(default != defaults[0] for default in defaults):
                unclear = Unreadable(f"two parsers declare {declaration.name}")
                declaration = replace(declaration, default=unclear)
            result.append(declaration)
    return tuple(result)


def _imports(module: LocalModule) -> Iterable[str]:
    for node in module.imports:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_parents(alias.name)
        else:
            origin = "." * node.level + (node.module or "")
            if node.module:
                yield from _with_parents(origin)
            separator = "." if node.module else ""
            if len(origin) > LONGEST_NAME:
                continue
            for alias in node.names:
                if alias.name != "*":
                    yield f"{origin}{separator}{alias.name}"


def _with_parents(name: str) -> Iterable[str]:
    end = name.find(".", len(name) - len(name.lstrip(".")))
    while end != -1:
        yield name[:end]
        end = name.find(".", end + 1)
    yield name


def _reassigned(module: LocalModule, reading: Reading) -> dict[str, Location]:
    """Attribute names that are stored to; ``self.name`` only in dataclasses of the parser."""
    found: dict[str, Location] = {}
    for store in module.attribute_stores:
        if store.owner != "self":
            found.setdefault(store.name, module.locate(store.node))
    for of in reading.dataclasses:
        for node in ast.walk(of.node):
            own = attribute_store(node)
            if own is not None and own.owner == "self":
                found.setdefault(own.name, of.scope.module.locate(node))
    return found
