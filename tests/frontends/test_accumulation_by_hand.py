"""The way out of a count that Accelerate ignores, where the loop counts by itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Dsguard

SCRIPT = """
import argparse
from accelerate import Accelerator
parser = argparse.ArgumentParser()
parser.add_argument("--gradient_accumulation_steps", type=int, default=4)
args = parser.parse_args()
accelerator = Accelerator()
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for step, batch in enumerate(loader):
"""
BY_HAND = """
    accelerator.backward(model(batch) / args.gradient_accumulation_steps)
    if (step + 1) % args.gradient_accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
"""
BY_ACCELERATE = """
    with accelerator.accumulate(model):
        accelerator.backward(model(batch))
        optimizer.step()
        optimizer.zero_grad()
"""


@pytest.mark.parametrize("count", ["auto", 1])
@pytest.mark.parametrize(("loop", "by_hand"), [(BY_HAND, True), (BY_ACCELERATE, False)])
def test_the_help_names_accumulate(
    loop: str, by_hand: bool, count: object, tmp_path: Path, dsguard: Dsguard
) -> None:
    """A number in the config would only divide the gradients: every backward is a step there."""
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": count,
        "zero_optimization": {"stage": 2},
    }
    (tmp_path / "ds.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "train.py").write_text(SCRIPT + loop, encoding="utf-8")
    launch = "accelerate launch --num_processes 2 --use_deepspeed --deepspeed_config_file ds.json"
    line = f"-- {launch} train.py"
    text = dsguard(f"check ds.json {line}", tmp_path).out
    report = json.loads(dsguard(f"check ds.json -o json {line}", tmp_path).out)
    (told,) = [one for one in report["findings"] if one["rule"] == "accumulation-ignored"]
    assert ("only makes the gradients smaller" in text) is by_hand
    assert (told["fix"] is not None) is (not by_hand and count == 1)


def test_a_loop_of_accelerate_is_told_of_no_engine(tmp_path: Path, dsguard: Dsguard) -> None:
    zero = {"stage": 2}
    config = {"gradient_accumulation_steps": 4, "zero_optimization": zero}
    (tmp_path / "ds.json").write_text(json.dumps(config), encoding="utf-8")
    divided = BY_ACCELERATE.replace("model(batch)", "model(batch) / 4")
    (tmp_path / "train.py").write_text(SCRIPT + divided, encoding="utf-8")
    launch = "accelerate launch --num_processes 2 --use_deepspeed --deepspeed_config_file ds.json"
    text = dsguard(f"check ds.json -- {launch} train.py", tmp_path).out
    assert "DSG801" in text
    assert "leave the division to Accelerate" in text
    assert "engine.backward" not in text
