"""Who reads the config that a flag names: the script says, where it can be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Dsguard

PARSES = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--{flag}")
args = parser.parse_args()
"""

HANDS = {
    "transformers": """
from transformers import Trainer, TrainingArguments
Trainer(model, TrainingArguments("out", deepspeed=args.{flag}, bf16=True)).train()
""",
    "accelerate": """
from accelerate import Accelerator
from accelerate.utils import DeepSpeedPlugin
accelerator = Accelerator(deepspeed_plugin=DeepSpeedPlugin(hf_ds_config=args.{flag}))
""",
    "lightning": """
from lightning.pytorch import Trainer
from lightning.pytorch.strategies import DeepSpeedStrategy
trainer = Trainer(strategy=DeepSpeedStrategy(config=args.{flag}), accumulate_grad_batches=4)
""",
    "plain": """
import deepspeed
engine, *_ = deepspeed.initialize(model=model, config=args.{flag})
""",
}
"""What a script does with the argument, by the front end that gets it."""

OPAQUE = "from mytrainer import main\nmain()\n"


def check(script: str | None, flag: str, folder: Path, dsguard: Dsguard, rest: str = "") -> Any:
    zero = {"stage": 2}
    config = {"train_micro_batch_size_per_gpu": "auto", "zero_optimization": zero}
    (folder / "ds.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "none.json").write_text('{"train_micro_batch_size_per_gpu": 1,}', encoding="utf-8")
    if script is not None:
        (folder / "train.py").write_text(script, encoding="utf-8")
    name = "none.json" if flag == "deepspeed" else "ds.json"
    line = f"check {name} -o json -- torchrun --nproc_per_node 2 train.py --{flag} {name} {rest}"
    return json.loads(dsguard(line, folder).out)


def reader(report: Any) -> Any:
    return report["checks"][0]["facts"]["front_end"]["value"]


@pytest.mark.parametrize("flag", ["deepspeed", "deepspeed_config"])
@pytest.mark.parametrize("name", HANDS)
def test_the_one_who_is_handed_it(name: str, flag: str, tmp_path: Path, dsguard: Dsguard) -> None:
    script = (PARSES + HANDS[name]).format(flag=flag)
    report = check(script, flag, tmp_path, dsguard)
    assert reader(report) == name
    found = {finding["rule"] for finding in report["findings"]}
    if name == "transformers":
        assert "unfilled-auto" not in found
    if name == "plain":
        assert not found & {"missing-zero-block", "not-strict-json"}


@pytest.mark.parametrize("script", [OPAQUE, None])
@pytest.mark.parametrize(
    ("flag", "name", "told"),
    [
        ("deepspeed", "transformers", {"missing-zero-block", "not-strict-json"}),
        ("deepspeed_config", "plain", {"unfilled-auto"}),
    ],
)
def test_the_name_of_a_flag_is_a_guess(
    script: str | None, flag: str, name: str, told: set[str], tmp_path: Path, dsguard: Dsguard
) -> None:
    report = check(script, flag, tmp_path, dsguard)
    assert reader(report) == name
    sure = {one["rule"]: one["confidence"] for one in report["findings"]}
    assert {sure[rule] for rule in told} == {"medium"}


@pytest.mark.parametrize(
    ("flag", "rest", "told"),
    [
        ("deepspeed", "--per_device_train_batch_size 1", "missing-zero-block"),
        ("deepspeed_config", "--deepspeed", "unfilled-auto"),
    ],
)
def test_another_flag_of_the_same_owner_makes_it_sure(
    flag: str, rest: str, told: str, tmp_path: Path, dsguard: Dsguard
) -> None:
    report = check(None, flag, tmp_path, dsguard, rest)
    assert {one["confidence"] for one in report["findings"] if one["rule"] == told} == {"high"}


def test_a_trainer_in_a_module_that_is_not_read_keeps_its_flag(
    tmp_path: Path, dsguard: Dsguard
) -> None:
    """Such scripts import deepspeed and make an Accelerator beside their own arguments."""
    script = "import deepspeed\nfrom accelerate import Accelerator\nfrom llava import train\n"
    report = check(
        script + "device = Accelerator().device\ntrain()\n", "deepspeed", tmp_path, dsguard
    )
    assert reader(report) == "transformers"


HF = """
from transformers import HfArgumentParser, Trainer, TrainingArguments
(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
Trainer(model=model, args=args).train()
"""


def test_a_flag_that_the_parser_refuses_reaches_no_trainer(
    tmp_path: Path, dsguard: Dsguard
) -> None:
    report = check(HF, "deepspeed_config", tmp_path, dsguard, "--output_dir out")
    assert reader(report) == "plain"
    sure = {one["rule"]: one["confidence"] for one in report["findings"]}
    assert sure["unfilled-auto"] == "medium"


def test_a_trainer_compares_no_config_that_it_does_not_get(
    tmp_path: Path, dsguard: Dsguard
) -> None:
    config = {"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}}
    (tmp_path / "ds.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "train.py").write_text(HF, encoding="utf-8")
    for flag, told in (("deepspeed", True), ("deepspeed_config", False)):
        outcome = dsguard(
            f"check -o concise -- torchrun --nproc_per_node 2 train.py --{flag} ds.json", tmp_path
        )
        assert ("training-argument-mismatch" in outcome.out) is told


def test_a_flag_that_a_dataclass_declares_goes_to_the_trainer(
    tmp_path: Path, dsguard: Dsguard
) -> None:
    fields = """
from dataclasses import dataclass
from transformers import HfArgumentParser, Trainer, TrainingArguments
@dataclass
class Own:
    deepspeed_config: str = ""
own, args = HfArgumentParser((Own, TrainingArguments)).parse_args_into_dataclasses()
Trainer(model=model, args=args).train()
"""
    report = check(fields, "deepspeed_config", tmp_path, dsguard, "--output_dir out")
    assert reader(report) == "transformers"


def test_a_switch_of_deepspeed_is_no_training_argument(tmp_path: Path, dsguard: Dsguard) -> None:
    script = """
import argparse
import deepspeed
parser = deepspeed.add_config_arguments(argparse.ArgumentParser())
args = parser.parse_args()
engine, *_ = deepspeed.initialize(args=args, model=model)
"""
    assert reader(check(script, "deepspeed", tmp_path, dsguard)) == "plain"


@pytest.mark.parametrize(
    "script",
    [
        HF.replace("(args,)", "args, rest").replace(
            "dataclasses()", "dataclasses(return_remaining_strings=True)"
        ),
        """
import argparse
from transformers import Trainer
from elsewhere import train
parser = argparse.ArgumentParser()
parser.add_argument("--name")
args, rest = parser.parse_known_args()
train(Trainer, rest)
""",
    ],
)
def test_what_a_parser_hands_on_may_reach_the_trainer(
    script: str, tmp_path: Path, dsguard: Dsguard
) -> None:
    report = check(script, "deepspeed_config", tmp_path, dsguard)
    assert reader(report) == "transformers"


@pytest.mark.deepspeed
def test_the_real_parser_refuses_it() -> None:
    transformers = pytest.importorskip("transformers")
    parser = transformers.HfArgumentParser(transformers.TrainingArguments)
    words = ["--output_dir", "out", "--deepspeed_config", "ds.json"]
    with pytest.raises(ValueError, match=r"not used.*--deepspeed_config"):
        parser.parse_args_into_dataclasses(words)
