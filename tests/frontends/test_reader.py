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
