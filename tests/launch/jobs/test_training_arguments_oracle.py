"""Files of TrainingArguments against the real HfArgumentParser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dsguard.launch.context import ONLY_TRAINING_ARGUMENTS
from dsguard.launch.jobs import training_arguments
from dsguard.launch.jobs.alone import read_job_file
from dsguard.launch.jobs.keys import text_of
from dsguard.launch.jobs.load import JobFileError, parse_job
from dsguard.launch.read import Surroundings
from dsguard.model.source import Source

from ..facts import kinds

pytest.importorskip("ruamel.yaml", reason="the yaml extra is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytestmark = pytest.mark.deepspeed

YAML = """\
output_dir: out
use_cpu: yes
per_device_train_batch_size: 4
gradient_accumulation_steps: 010
learning_rate: 2.0e-5
max_grad_norm: 0.3
weight_decay: 1e-2
lr_scheduler_type: cosine
optim: adamw_torch
warmup_steps: 10
max_steps: 1_000
bf16: off
seed: 1:30
per_device_train_batch_size: 2
"""
JSON = """\
{
  "output_dir": "out",
  "use_cpu": true,
  "per_device_train_batch_size": 4,
  "gradient_accumulation_steps": 2,
  "learning_rate": 1e-5,
  "max_steps": 3,
  "gradient_accumulation_steps": 8
}
"""


def real(path: Path) -> Any:
    parser = transformers.HfArgumentParser(transformers.TrainingArguments)
    read = parser.parse_json_file if path.suffix == ".json" else parser.parse_yaml_file
    (arguments,) = read(str(path))
    return arguments


@pytest.mark.parametrize(("name", "text"), [("args.yaml", YAML), ("args.json", JSON)])
def test_values_are_those_of_the_real_arguments(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    arguments = real(path)
    launch = read_job_file(Source(name, text), Surroundings(tmp_path))
    assert launch is not None
    assert len(list(launch.arguments)) == len(set(text.split("\n"))) - (
        2 if name == "args.yaml" else 4
    )
    for argument in launch.arguments:
        if argument.name != "output_dir":
            value = getattr(arguments, argument.name)
            value = getattr(value, "value", value)
            assert text_of(value) == argument.value, argument.name


def test_a_number_that_is_text_stays_text(tmp_path: Path) -> None:
    text = "output_dir: out\nuse_cpu: true\nnum_train_epochs: 1\nlearning_rate: 1e-5\n"
    (tmp_path / "args.yaml").write_text(text)
    assert real(tmp_path / "args.yaml").learning_rate == "1e-5"
    launch = read_job_file(Source("args.yaml", text), Surroundings(tmp_path))
    assert launch is not None
    assert kinds(launch) == ["job-number-is-text"]
    dotted = Source("args.yaml", text.replace("1e-5", "1.0e-5"))
    launch = read_job_file(dotted, Surroundings(tmp_path))
    assert launch is not None
    assert kinds(launch) == []


@pytest.mark.parametrize("text", ["{'max_steps': 1}", '{"max_steps": 1,}', "// c\n{}", "{", ""])
def test_what_no_json_reader_takes_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "args.json").write_text(text)
    with pytest.raises(ValueError, match=r"."):
        real(tmp_path / "args.json")
    with pytest.raises(JobFileError) as error:
        parse_job(Source("args.json", text))
    assert error.value.trouble.kind == "job-file-syntax"


def test_the_numbers_are_arguments_with_numbers() -> None:
    fields = transformers.TrainingArguments.__dataclass_fields__
    for name in training_arguments._NUMBERS - {"warmup_ratio"}:  # Gone in transformers 5.
        assert isinstance(fields[name].default, int | float), name
    assert set(fields) >= set(ONLY_TRAINING_ARGUMENTS)
