"""The HF scripts, compared with the real HfArgumentParser."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from dsguard.script.declaration import Constant, Takes, Unreadable
from dsguard.script.lookup import argument_value, framework_value
from dsguard.script.script import ParserKind
from tests.script.reading import load, value
from tests.script.real import argparse_parsers, real_default
from tests.script.test_argparse_real import alone, takes

pytest.importorskip("transformers")

SCRIPTS = ["causal_lm.py", "own_training_arguments.py", "hf_fields.py", "script_arguments.py"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_argument_is_read(name: str) -> None:
    parser = argparse_parsers(name, stand_ins=False)[-1]
    script = load(name)
    assert script.parser is ParserKind.HF
    assert script.abbreviations is parser.allow_abbrev
    assert script.gaps == ()
    real = {tuple(a.option_strings): a for a in parser._actions}
    for declaration in script.arguments:
        action = real.pop(declaration.flags)
        assert declaration.name == action.dest
        assert not isinstance(declaration.default, Unreadable), declaration
        known = declaration.default.value if declaration.default else None
        assert known == real_default(parser, action), declaration.name
        assert declaration.required == action.required, declaration.name
        assert declaration.takes is takes(action), declaration.name
        assert list(declaration.choices or ()) == list(action.choices or ())
        if declaration.alone is not None:
            assert declaration.alone == Constant(alone(action, declaration.flags[0]))
        assert type_matches(declaration.type_name, action), declaration.name
    rest = [a for a in real.values() if not isinstance(a, argparse._HelpAction)]
    if script.framework is None:
        assert rest == []
    for action in rest:
        known_default = framework_value(script, action.dest)
        first = next(a for a in parser._actions if a.dest == action.dest)
        if known_default is not None:
            assert known_default.whose == "transformers"
            assert known_default.value == Constant(first.default)


def test_the_order_is_the_order_of_the_fields() -> None:
    parser = argparse_parsers("hf_fields.py", stand_ins=False)[-1]
    names = [a.dest for a in parser._actions if a.dest != "help"]
    assert [d.name for d in load("hf_fields.py").arguments] == names


def test_an_override_without_annotation_is_no_field() -> None:
    """Python keeps the inherited default then, and so does the command line."""
    script = load("own_training_arguments.py")
    assert argument_value(script, "max_grad_norm") is None
    known = framework_value(script, "max_grad_norm")
    assert known is not None
    assert known.value == Constant(1.0)


def test_the_overrides_of_a_subclass_are_declared() -> None:
    script = load("own_training_arguments.py")
    assert script.framework == "TrainingArguments"
    assert script.is_training_arguments
    assert value(script, "per_device_train_batch_size") == 2
    assert value(script, "gradient_accumulation_steps") == 16
    assert value(script, "bf16") is True
    assert framework_value(script, "bf16") is None


def type_matches(name: str | None, action: Any) -> bool:
    if action.type is None:
        return name is None
    real = getattr(action.type, "__name__", "")
    if real == "string_to_bool":
        return name == "bool"
    if real == "<lambda>":  # the choices of a Literal or an Enum
        return action.choices is not None and takes(action) is Takes.ONE
    return real == name
