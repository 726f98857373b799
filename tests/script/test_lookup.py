"""Flags and abbreviations, compared with what argparse and HfArgumentParser do."""

from __future__ import annotations

import argparse
import contextlib
import io
from typing import Any

import pytest
from msgspec.structs import replace

from dsguard.script.declaration import Constant, Unreadable
from dsguard.script.lookup import Ambiguous, argument_value, expand, framework_value
from tests.script.reading import load, read
from tests.script.real import argparse_parsers

FLAGS = [
    *("--batch_size", "--batch", "--b", "--e", "--lo", "--log", "--log-", "--log_interval"),
    *("-b", "-e", "-l", "--", "--num-experts", "--num", "--m", "--mo", "--moe", "--ml", "--zz"),
    *("--help", "--he", "-h", "--s", "--dtype", "--d", "-bx", "--lr", "--l", "--lr-", "--n"),
    *("--no-bf16", "--no-b", "--bf", "-v", "--ver", "--max", "--max-steps", "--max_steps"),
]


@pytest.mark.parametrize("name", ["plain_loop.py", "computed_defaults.py", "options_class.py"])
def test_argparse_takes_flags_as_we_do(name: str) -> None:
    script = load(name)
    # The arguments that a stand-in for DeepSpeed does not add are left out on both sides.
    parser = argparse_parsers(name)[-1]
    known = {a.dest for a in parser._actions} | set(parser._defaults)
    own = [d for d in script.arguments if d.name in known]
    script = replace(script, arguments=tuple(own))
    for flag in FLAGS:
        assert outcome(expand(script, flag)) == real(parser, flag), flag


def test_trainer_arguments_are_abbreviated_as_the_real_parser_does() -> None:
    pytest.importorskip("transformers")
    script = load("own_training_arguments.py")
    parser = argparse_parsers("own_training_arguments.py", stand_ins=False)[-1]
    for flag in [
        *("--gradient_acc", "--gradient-acc", "--gradient_", "--gradient", "--per_device_t"),
        *("--per_device_train_batch_size", "--per-device-train-batch-size", "--bf", "--bf16"),
        *("--no_bf16", "--no-b", "--lora", "--lora_r", "--max_g", "--optim", "--zzz"),
        *("--no_remove", "--no-data"),
    ]:  # fmt: skip
        assert outcome(expand(script, flag)) == real(parser, flag), flag


def test_an_abbreviation_that_older_releases_read_otherwise_is_not_settled() -> None:
    script = load("own_training_arguments.py")
    assert isinstance(expand(script, "--warmup_"), Unreadable)
    assert expand(script, "--warmup_s") == "warmup_steps"


def test_no_abbreviation_where_the_parser_forbids_it() -> None:
    script = load("parser_elsewhere/train.py")
    assert expand(script, "--batch") is None
    assert expand(script, "--batch-size") == "batch_size"


def test_a_gap_leaves_only_exact_flags() -> None:
    script = load("subcommands.py")
    assert expand(script, "--seed") == "seed"
    assert expand(script, "--se") == Unreadable("the script has subcommands")


def test_names_that_trl_adds_are_not_known() -> None:
    script = read("""
        from trl import SFTConfig, TrlParser
        TrlParser(SFTConfig).parse_args_and_config()
        """)
    assert script.gaps == ()
    assert expand(script, "--learning_rate") == "learning_rate"
    assert isinstance(expand(script, "--max_len"), Unreadable)
    known = framework_value(script, "learning_rate")
    assert known is not None
    assert (known.value, known.whose) == (Constant(2e-5), "trl")
    inherited = framework_value(script, "per_device_train_batch_size")
    assert inherited is not None
    assert (inherited.value, inherited.whose) == (Constant(8), "transformers")
    assert framework_value(script, "max_length") is None


@pytest.mark.parametrize("text", ["import os", "import fire\nfire.Fire(f)", "def ("])
def test_nothing_is_said_of_a_command_line_that_is_not_read(text: str) -> None:
    script = read(text)
    assert isinstance(expand(script, "--lr"), Unreadable)
    assert argument_value(script, "lr") is None
    assert framework_value(script, "lr") is None


def outcome(found: object) -> object:
    assert not isinstance(found, Unreadable), found
    return "ambiguous" if isinstance(found, Ambiguous) else found


def real(parser: argparse.ArgumentParser, flag: str) -> object:
    """The dest of the action that a flag means, ``ambiguous`` or None."""

    def parse(self: Any, option: str) -> Any:
        return self._parse_optional(option)

    stderr = io.StringIO()
    if flag == "--":
        return "ambiguous"
    try:
        with contextlib.redirect_stderr(stderr):
            found = parse(parser, flag)
    except SystemExit:
        assert "ambiguous" in stderr.getvalue()
        return "ambiguous"
    if found is None:
        return None
    # Newer releases give all candidates and leave the error to their caller.
    candidates = found if isinstance(found, list) else [found]
    if len(candidates) > 1:
        return "ambiguous"
    action = candidates[0][0]
    return action.dest if action is not None else None
