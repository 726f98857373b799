"""The framework defaults, compared with the installed transformers."""

from __future__ import annotations

import dataclasses

import pytest

from dsguard.script.declaration import Constant, Unreadable
from dsguard.script.training_arguments import (
    FRAMEWORK_CLASSES,
    OLDER_NAMES,
    TRAINING_ARGUMENTS_DEFAULTS,
    TRAINING_ARGUMENTS_NAMES,
    TRAINING_ARGUMENTS_ON,
    framework_default,
    framework_names,
)


def test_the_defaults_are_those_of_transformers() -> None:
    transformers = pytest.importorskip("transformers", minversion="5.24")
    fields = {f.name: f for f in dataclasses.fields(transformers.TrainingArguments) if f.init}
    assert fields.keys() == TRAINING_ARGUMENTS_NAMES
    for name, value in TRAINING_ARGUMENTS_DEFAULTS.items():
        default = fields[name].default
        assert default == value, name
        assert type(default) is type(value) or isinstance(default, str), name
    assert {n for n, f in fields.items() if f.default is True} == TRAINING_ARGUMENTS_ON
    assert not OLDER_NAMES & fields.keys()


def test_the_names_that_sequence_to_sequence_adds() -> None:
    transformers = pytest.importorskip("transformers", minversion="5.24")
    of = transformers.Seq2SeqTrainingArguments
    names = {f.name for f in dataclasses.fields(of) if f.init}
    assert framework_names("Seq2SeqTrainingArguments") == names


def test_the_defaults_in_which_sft_differs() -> None:
    trl = pytest.importorskip("trl")
    fields = {f.name: f for f in dataclasses.fields(trl.SFTConfig)}
    for name in ("learning_rate", "logging_steps", "gradient_checkpointing"):
        known = framework_default("SFTConfig", name)
        assert known is not None
        assert known.value == Constant(fields[name].default)


@pytest.mark.parametrize("name", FRAMEWORK_CLASSES)
def test_every_class_answers(name: str) -> None:
    known = framework_default(name, "gradient_accumulation_steps")
    assert known is not None
    assert (known.value, known.whose) == (Constant(1), "transformers")
    assert framework_default(name, "no_such_name") is None


def test_other_classes_of_trl_have_defaults_by_release() -> None:
    known = framework_default("GRPOConfig", "learning_rate")
    assert known is not None
    assert isinstance(known.value, Unreadable)
    assert known.whose == "trl"
