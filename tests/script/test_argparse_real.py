"""Every argument of the argparse scripts, compared with what the real argparse was told."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from dsguard.script.declaration import Constant, Declaration, Takes, Unreadable
from dsguard.script.script import ParserKind, Script
from tests.script.reading import load
from tests.script.real import argparse_parsers, real_default

DEEPSPEED = ("deepspeed", "deepspeed_config", "deepscale", "deepscale_config")

# Script, number of parse calls until the parser is complete, and the defaults that only a run
# can tell: everything else has to be read.
CASES: list[tuple[str, int, set[str]]] = [
    ("plain_loop.py", 1, set()),
    ("groups_in_functions.py", 1, {"workers"}),
    ("computed_defaults.py", 1, {"output", "devices", "epochs"}),
    ("options_class.py", 1, set()),
    ("parser_elsewhere/train.py", 1, set()),
    ("config_module/train.py", 1, set()),
]


@pytest.mark.parametrize(("name", "parses", "unreadable"), CASES, ids=[c[0] for c in CASES])
def test_every_argument_is_read(name: str, parses: int, unreadable: set[str]) -> None:
    parser = argparse_parsers(name, parses)[-1]
    script = load(name)
    assert script.parser is ParserKind.ARGPARSE
    assert script.gaps == ()
    assert script.abbreviations is parser.allow_abbrev
    compare(script, parser, unreadable, without=DEEPSPEED)


def test_a_parser_that_uses_transformers() -> None:
    pytest.importorskip("transformers")
    parser = argparse_parsers("no_trainer.py", stand_ins=False)[-1]
    compare(load("no_trainer.py"), parser, {"lr_scheduler_type"})


@pytest.mark.deepspeed
def test_the_arguments_that_deepspeed_adds() -> None:
    pytest.importorskip("deepspeed")
    parser = argparse_parsers("plain_loop.py", stand_ins=False)[-1]
    script = load("plain_loop.py")
    assert script.adds_deepspeed_arguments
    compare(script, parser, set())


def test_a_config_file_that_may_replace_defaults_leaves_none_known() -> None:
    first, second = argparse_parsers("config_then_arguments.py", parses=2)
    script = load("config_then_arguments.py")
    flags = {flag for d in script.arguments for flag in d.flags}
    real = {f for p in (first, second) for a in p._actions for f in a.option_strings}
    assert flags == real - {"-h", "--help"}
    assert all(isinstance(d.default, Unreadable) for d in script.arguments)
    assert len(script.gaps) == 1


def compare(
    script: Script,
    parser: argparse.ArgumentParser,
    unreadable: set[str],
    without: tuple[str, ...] = (),
) -> None:
    """Hold every declaration against the action that the real parser holds."""
    # Where the real deepspeed is loaded already, its stand-in is not: it adds its arguments.
    actions = [
        a
        for a in parser._actions
        if not isinstance(a, argparse._HelpAction) and a.dest not in without
    ]
    declared = [d for d in script.arguments if d.name not in without and not only_default(d)]
    assert [(d.name, d.flags) for d in declared] == [
        (a.dest, tuple(a.option_strings)) for a in actions
    ]
    not_read = set()
    for declaration, action in zip(declared, actions, strict=True):
        if isinstance(declaration.default, Unreadable):
            not_read.add(declaration.name)
        else:
            known = declaration.default.value if declaration.default else None
            assert known == real_default(parser, action), declaration.name
        if action.option_strings or action.nargs != "*":  # an empty list is no missing one
            assert declaration.required == action.required, declaration.name
        assert declaration.takes is takes(action), declaration.name
        assert declaration.type_name == type_name(action), declaration.name
        if declaration.choices is not None or action.choices is not None:
            assert list(declaration.choices or ()) == list(action.choices or ())
        if declaration.is_switch and isinstance(declaration.alone, Constant):
            for flag in declaration.flags:
                meant = declaration.standing_alone(flag)
                assert meant == Constant(alone(action, flag)), flag
    assert not_read == unreadable
    for declaration in script.arguments:
        if only_default(declaration):
            assert isinstance(declaration.default, Constant)
            assert parser._defaults[declaration.name] == declaration.default.value


def only_default(declaration: Declaration) -> bool:
    return not declaration.flags and declaration.takes is Takes.NOTHING


def takes(action: argparse.Action) -> Takes:
    if action.nargs is None or action.nargs == 1:
        return Takes.ONE
    if action.nargs == 0:
        return Takes.NOTHING
    return Takes.OPTIONAL if action.nargs == "?" else Takes.MANY


def alone(action: argparse.Action, flag: str) -> Any:
    if isinstance(action, argparse.BooleanOptionalAction):
        return not flag.startswith("--no-")
    return action.const


def type_name(action: argparse.Action) -> str | None:
    if action.type is None:
        return None
    name = getattr(action.type, "__name__", "")
    return {"<lambda>": "lambda", "string_to_bool": "bool"}.get(name, name)
