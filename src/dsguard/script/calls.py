"""What a call does, as far as it concerns the command line."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dsguard.script import constants
from dsguard.script.argparse_arguments import (
    add_argument,
    declare,
    deepspeed_arguments,
    new_parser,
    set_defaults,
)
from dsguard.script.arguments import Arguments
from dsguard.script.declaration import Constant, FromArgument, Unreadable
from dsguard.script.loop.calls import LibraryCalls, flowing
from dsguard.script.loop.description import Condition, Meaning
from dsguard.script.loop.dicts import DICT_READS
from dsguard.script.loop.escape import lose_own
from dsguard.script.loop.methods import Methods, is_first_rank_name, last_name
from dsguard.script.loop.values import Rank, Test
from dsguard.script.objects import (
    COMPUTED,
    App,
    Class,
    External,
    Function,
    Instance,
    Method,
    Namespace,
    Parser,
    Value,
    constant_of,
    holds_parser,
    members_of,
    text_of,
)
from dsguard.script.reading import CommandFunction
from dsguard.script.script import ParserKind, SetupCall
from dsguard.script.setups import framework_of, setup_class
from dsguard.script.written import written

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dsguard.model.source import Location
    from dsguard.script.interpreter import Interpreter
    from dsguard.script.scope import Scope

_GROUPS = frozenset({"add_argument_group", "add_mutually_exclusive_group"})
_PARSES = frozenset({"parse_args", "parse_known_args", "parse_intermixed_args"})
_HF_PARSES = frozenset({"parse_args_into_dataclasses", "parse_args_and_config"})
_KEEPS_REST = frozenset({"return_remaining_strings", "fail_with_unknown_args"})
"""What tells the parsers of HF and TRL that unknown arguments are no error."""
_HF_PARSERS = frozenset({"HfArgumentParser", "TrlParser", "H4ArgumentParser"})
_CONVERSIONS = frozenset({"builtins.int", "builtins.float", "builtins.bool", "builtins.str"})
_READ_ONLY = frozenset({"builtins", "argcomplete", "logging"})
_NAMED_ONLY = {
    kind.value: kind
    for kind in (
        ParserKind.FIRE,
        ParserKind.TYRO,
        ParserKind.JSONARGPARSE,
        ParserKind.ABSL,
        ParserKind.HYDRA,
        ParserKind.CONFIGARGPARSE,
        ParserKind.SIMPLE_PARSING,
        ParserKind.TAP,
    )
}
# Calls of these libraries that take the command line; others of them say nothing.
_TAKES_COMMAND_LINE = {
    ParserKind.FIRE: {"Fire"},
    ParserKind.TYRO: {"cli"},
    ParserKind.JSONARGPARSE: {"CLI", "auto_cli", "ArgumentParser", "auto_parser"},
    ParserKind.ABSL: {"run", "DEFINE_integer", "DEFINE_float", "DEFINE_string", "DEFINE_bool"},
    ParserKind.HYDRA: {"main", "initialize", "compose"},
    ParserKind.CONFIGARGPARSE: {"ArgumentParser", "ArgParser", "get_argument_parser"},
    ParserKind.SIMPLE_PARSING: {"ArgumentParser", "parse", "parse_known_args"},
    ParserKind.TAP: {"Tap", "tapify"},
}


_REPLACES = frozenset({"dataclasses.replace", "copy.replace"})
"""What makes an object anew with other fields: TrainingArguments are then compared anew, too."""


class Calls:
    """Reads the calls of one script and notes what they declare."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._reading = interpreter.reading
        self._libraries = LibraryCalls(interpreter.reading.loop)
        self._methods = Methods(interpreter.reading.loop)

    def read(self, node: ast.Call, callee: Value, scope: Scope) -> Value:
        """What a call gives, after its arguments were evaluated and its effects noted."""
        arguments = Arguments.of(node, self._interpreter.expressions, scope)
        if isinstance(callee, External):
            return self._library(node, callee, arguments, scope)
        if isinstance(callee, Function):
            return self._interpreter.call_function(callee, arguments)
        if isinstance(callee, Class):
            return self._class(node, callee, arguments, scope)
        if isinstance(callee, Method):
            if isinstance(callee.receiver, Parser):
                return self._parser_method(node, callee.receiver, callee.name, arguments, scope)
            if callee.name in ("add_typer", "add_command"):
                self._reading.gap("the app has subcommands", scope.module, node)
            return COMPUTED
        if isinstance(callee, App):
            return COMPUTED
        tracked: tuple[Value | None] | None = self._methods.called(
            node, callee, arguments, scope.module
        )
        if tracked is not None:
            return tracked[0] or COMPUTED
        self._note_lost_declaration(node, arguments, scope)
        self._note_escape(node, arguments, scope)
        return self._unread(node, callee, arguments, scope)

    def _unread(self, node: ast.Call, callee: Value, arguments: Arguments, scope: Scope) -> Value:
        """What a call of something unknown gives: what flows through it, or a rank by its name."""
        self._libraries.escape(node, callee, arguments, scope.module)
        self._change_held(node, scope)
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            owner = scope.find(node.func.value.id)
            if isinstance(owner, Instance):
                lose_own(node, owner, scope.module, self._reading.loop)
        found: Value | None = flowing(arguments.all)
        if found is not None:
            return found
        name = last_name(node.func)
        if not arguments.given and name in ("get_rank", "get_local_rank", "get_global_rank"):
            return Rank()
        return self._first_rank_by_name(node, arguments, scope) or COMPUTED

    def _change_held(self, node: ast.Call, scope: Scope) -> None:
        """``args.config.update(…)`` of a dict that the script put there."""
        if isinstance(node.func, ast.Attribute) and node.func.attr not in DICT_READS:
            name = scope.argument_of(node.func.value)
            if name is not None:
                reason = f"{node.func.attr}() changes it as part of the arguments"
                self._reading.loop.lose_held(reason, name)

    def _first_rank_by_name(
        self, node: ast.Call, arguments: Arguments, scope: Scope
    ) -> Test | None:
        """``is_main_process()`` and the like, wherever the function comes from."""
        name = last_name(node.func)
        if arguments.given or not name.startswith("is_") or not is_first_rank_name(name):
            return None
        where = (scope.module.locate(node), scope.module.places.excerpt(node))
        return Test((Condition(Meaning.FIRST_RANK, True, *where),))

    def note_class(self, bases: Iterable[Value]) -> None:
        """Note a class that takes the command line by deriving from a library's class."""
        for base in bases:
            if isinstance(base, External):
                self._note_named_only(base)

    def new_parser_of(self, of: Class) -> Parser | None:
        """The parser that an object of a class is, None for classes that are no parsers."""
        for base in of.lineage():
            if isinstance(base, External):
                if base.name == "argparse.ArgumentParser":
                    return self._reading.add_parser(Parser(ParserKind.ARGPARSE, of=of))
                if _is_hf_parser(base):
                    return self._reading.add_parser(Parser(ParserKind.HF, of=of))
        return None

    def _library(
        self, node: ast.Call, callee: External, arguments: Arguments, scope: Scope
    ) -> Value:
        module = scope.module
        if callee.name == "argparse.ArgumentParser":
            keywords = arguments.keywords
            return new_parser(ParserKind.ARGPARSE, node, keywords, module, self._reading)
        if _is_hf_parser(callee):
            return self._hf_parser(node, callee, arguments, scope)
        if callee.name == "deepspeed.add_config_arguments":
            return self._add_deepspeed(node, arguments, scope)
        if callee.name == "typer.Typer":
            return App(ParserKind.TYPER)
        if callee.name == "typer.run":
            self._typer_run(node, arguments, scope)
            return COMPUTED
        if framework_of(callee) is not None:
            self._note_training_arguments(node, callee, arguments, scope)
            return COMPUTED
        if callee.name in _REPLACES:
            self._reading.replaced.update({"*"} if arguments.starred else arguments.keywords)
        setup = setup_class(callee)
        if setup is not None:
            self._note_setup(node, callee, setup, arguments, scope)
        found: Value | None = self._first_rank_by_name(node, arguments, scope)
        found = found or self._libraries.read(node, callee, arguments, module)
        if found is not None:
            self._note_named_only(callee)
            self._note_escape(node, arguments, scope, callee)
            return found
        if callee.name in _CONVERSIONS and len(arguments.all) == 1 and arguments.positional:
            value = constant_of(arguments.positional[0])
            converted = constants.converted(callee.last, value.value) if value else None
            return converted or COMPUTED
        self._note_named_only(callee)
        self._note_escape(node, arguments, scope, callee)
        return COMPUTED

    def _hf_parser(
        self, node: ast.Call, callee: External, arguments: Arguments, scope: Scope
    ) -> Parser:
        parser = new_parser(ParserKind.HF, node, arguments.keywords, scope.module, self._reading)
        types = arguments.first("dataclass_types")
        if types is not None:
            from dsguard.script.hf_arguments import add_dataclasses

            add_dataclasses(
                parser, types, node, scope.module, self._interpreter.expressions, self._reading
            )
        if callee.last == "TrlParser":
            parser.config_flag = "--config"
        return parser

    def _class(self, node: ast.Call, of: Class, arguments: Arguments, scope: Scope) -> Value:
        self._note_training_arguments(node, of, arguments, scope)
        return self._interpreter.create(of, arguments)

    def _add_deepspeed(self, node: ast.Call, arguments: Arguments, scope: Scope) -> Value:
        parser = arguments.first("parser")
        self._reading.adds_deepspeed_arguments = True
        if not isinstance(parser, Parser):
            return COMPUTED
        for declaration in deepspeed_arguments(scope.module.locate(node)):
            declare(parser, declaration, self._reading)
        return parser

    def _typer_run(self, node: ast.Call, arguments: Arguments, scope: Scope) -> None:
        function = arguments.first("function")
        if isinstance(function, Function):
            from dsguard.script.typer_parameters import typer_declarations

            found = typer_declarations(function, self._interpreter.expressions)
            self._reading.commands.append(CommandFunction(ParserKind.TYPER, tuple(found)))
        else:
            self._reading.gap("the function that typer runs is not found", scope.module, node)

    def _parser_method(
        self, node: ast.Call, parser: Parser, name: str, arguments: Arguments, scope: Scope
    ) -> Value:
        module, reading = scope.module, self._reading
        if name in _GROUPS:
            return parser
        if name in ("add_subparsers", "add_parser"):
            if not parser.detached:
                reading.gap("the script has subcommands", module, node)
            return Parser(parser.kind, detached=True)
        if parser.detached:
            return COMPUTED
        if name == "add_argument":
            add_argument(parser, node, arguments.positional, arguments.keywords, module, reading)
        elif name == "set_defaults":
            set_defaults(parser, node, arguments.keywords, module, reading)
        elif name in _PARSES or (name in _HF_PARSES and parser.kind is ParserKind.HF):
            if parser.framework is not None:
                reading.loop.set_up(module.locate(node))
            if name == "parse_known_args" or _KEEPS_REST & arguments.keywords.keys():
                reading.hands_on_rest = True
            return self._parse(parser, arguments)
        elif name == "add_arguments" or name.startswith("_add"):
            reading.gap(f"{name} may declare arguments", module, node)
        return COMPUTED

    def _parse(self, parser: Parser, arguments: Arguments) -> Value:
        words = arguments.first("args")
        has_own_words = members_of(words) is not None
        if not has_own_words or parser.reads_command_line is None:
            parser.reads_command_line = not has_own_words
        flag = text_of(arguments.keywords.get("args_file_flag"))
        parser.config_flag = flag or parser.config_flag
        return Namespace(parser)

    def _note_training_arguments(
        self, node: ast.Call, callee: External | Class, arguments: Arguments, scope: Scope
    ) -> None:
        lineage = callee.lineage() if isinstance(callee, Class) else (callee,)
        framework = next((name for value in lineage if (name := framework_of(value))), None)
        if framework is None:
            return
        self._libraries.training_arguments(node, arguments, scope.module)
        self._note_setup(node, callee, framework, arguments, scope)

    def _note_setup(
        self,
        node: ast.Call,
        callee: External | Class,
        framework: str,
        arguments: Arguments,
        scope: Scope,
    ) -> None:
        """Note what a class that sets a front end up is given."""
        keywords: dict[str, Constant | Unreadable | FromArgument] = {}
        places: dict[str, Location] = {}
        written_at = {keyword.arg: keyword.value for keyword in node.keywords}
        for name, value in arguments.keywords.items():
            at = written_at.get(name, node)
            places[name] = scope.module.locate(at)
            keywords[name] = (
                value if isinstance(value, FromArgument) else written(value, at, scope.module)
            )
        self._reading.setups.append(
            SetupCall(
                class_name=callee.last if isinstance(callee, External) else callee.node.name,
                framework=framework,
                keywords=keywords,
                places=places,
                complete=not (arguments.starred or arguments.positional),
                location=scope.module.locate(node),
            )
        )

    def _note_named_only(self, callee: External) -> None:
        kind = _NAMED_ONLY.get(callee.library)
        if callee.last == "LightningCLI":
            self._reading.named_only.append(ParserKind.JSONARGPARSE)
        elif kind is not None and callee.last in _TAKES_COMMAND_LINE[kind]:
            self._reading.named_only.append(kind)

    def _note_escape(
        self, node: ast.Call, arguments: Arguments, scope: Scope, callee: External | None = None
    ) -> None:
        """Note that code which is not read may add to a parser."""
        if callee is not None and callee.library in _READ_ONLY:
            return
        if any(holds_parser(value) for value in arguments.all):
            called = scope.module.places.excerpt(node.func)
            self._reading.gap(f"{called} gets the parser and is not read", scope.module, node)

    def _note_lost_declaration(self, node: ast.Call, arguments: Arguments, scope: Scope) -> None:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            texts = [text_of(value) for value in arguments.positional]
            if any(text and text.startswith("-") for text in texts):
                receiver = scope.module.places.excerpt(node.func.value)
                self._reading.gap(
                    f"whether {receiver} is the parser of the script is not known",
                    scope.module,
                    node,
                )


def _is_hf_parser(value: External) -> bool:
    return value.library in ("transformers", "trl") and value.last in _HF_PARSERS
