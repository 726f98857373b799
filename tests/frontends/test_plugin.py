"""A ``DeepSpeedPlugin(…)`` of the script: what dsguard makes of it, and the real one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Dsguard
from tests.test_fixture_oracle import pytestmark as of_oracle

_, installed = of_oracle

KEYS = ("gradient_accumulation_steps", "gradient_clipping", "zero_optimization.stage")
FACTS = ("gradient_accumulation_steps", "gradient_clipping", "zero_stage")

AUTO = dict.fromkeys(
    [
        *("train_batch_size", "train_micro_batch_size_per_gpu"),
        *("gradient_accumulation_steps", "gradient_clipping"),
    ],
    "auto",
)
FILES: dict[str, Any] = {
    "auto": {**AUTO, "zero_optimization": {"stage": 2}},
    "numbers": {
        **{**AUTO, "gradient_accumulation_steps": 4, "gradient_clipping": 0.5},
        "zero_optimization": {"stage": 1},
    },
    "no count": {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}},
}
OPTIONS = """distributed_type: DEEPSPEED
num_processes: 2
deepspeed_config:
  gradient_accumulation_steps: 4
  gradient_clipping: 1.0
  zero_stage: 2
"""
ENVIRON = {
    "ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "4",
    "ACCELERATE_GRADIENT_CLIPPING": "1.0",
    "ACCELERATE_DEEPSPEED_ZERO_STAGE": "2",
}

SCRIPT = """
import argparse
from accelerate import Accelerator, DeepSpeedPlugin
parser = argparse.ArgumentParser()
parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
parser.add_argument("--max_grad_norm", type=float, default=1.0)
args = parser.parse_args()
plugin = DeepSpeedPlugin({})
accelerator = Accelerator(deepspeed_plugin=plugin)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in loader:
    with accelerator.accumulate(model):
        accelerator.backward(model(batch))
        optimizer.step()
        optimizer.zero_grad()
"""
BY_ARGUMENT = "gradient_accumulation_steps=args.gradient_accumulation_steps, gradient_clipping="
PLUGINS = {
    "": {},
    "zero_stage=3": {"zero_stage": 3},
    "zero_stage=3, gradient_accumulation_steps=16, gradient_clipping=0.3": {
        "zero_stage": 3,
        "gradient_accumulation_steps": 16,
        "gradient_clipping": 0.3,
    },
    f"{BY_ARGUMENT}args.max_grad_norm": {
        "gradient_accumulation_steps": 16,
        "gradient_clipping": 0.3,
    },
}
FLAGS = "--gradient_accumulation_steps 16 --max_grad_norm 0.3"


def report(name: str, plugin: str, folder: Path, dsguard: Dsguard) -> Any:
    (folder / "train.py").write_text(SCRIPT.format(plugin), encoding="utf-8")
    line = "check -o json -- accelerate launch --config_file acc.yaml train.py"
    if name == "options":
        (folder / "acc.yaml").write_text(OPTIONS, encoding="utf-8")
    else:
        (folder / "ds.json").write_text(json.dumps(FILES[name]), encoding="utf-8")
        told = "--num_processes 2 --use_deepspeed --deepspeed_config_file ds.json"
        line = f"check ds.json -o json -- accelerate launch {told} train.py"
    return json.loads(dsguard(f"{line} {FLAGS}", folder).out)


@pytest.mark.deepspeed
@installed
@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("name", [*FILES, "options"])
def test_the_real_plugin_agrees(
    name: str, plugin: str, tmp_path: Path, dsguard: Dsguard, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accelerate import DeepSpeedPlugin

    facts = report(name, plugin, tmp_path, dsguard)["checks"][0]["facts"]
    if name == "options":
        for variable, value in ENVIRON.items():
            monkeypatch.setenv(variable, value)
        real = DeepSpeedPlugin(**PLUGINS[plugin])
    else:
        real = DeepSpeedPlugin(hf_ds_config=str(tmp_path / "ds.json"), **PLUGINS[plugin])
    for key, fact in zip(KEYS, FACTS, strict=True):
        value = real.get_value(key)
        if value is not None and value != "auto":
            assert facts[fact]["value"] == value


@pytest.mark.parametrize("name", ["auto", "options"])
@pytest.mark.parametrize("plugin", [text for text in PLUGINS if "clipping" in text])
def test_what_the_plugin_is_given_is_not_called_ignored(
    name: str, plugin: str, tmp_path: Path, dsguard: Dsguard
) -> None:
    found = {finding["rule"] for finding in report(name, plugin, tmp_path, dsguard)["findings"]}
    assert not found & {"accumulation-ignored", "implicit-clipping", "clipping-not-applied"}


@pytest.mark.parametrize("name", ["auto", "options"])
@pytest.mark.parametrize(
    "plugin",
    ["**settings", "gradient_accumulation_steps=count(), gradient_clipping=limit()"],
)
def test_what_cannot_be_read_is_not_known(
    name: str, plugin: str, tmp_path: Path, dsguard: Dsguard
) -> None:
    told = report(name, plugin, tmp_path, dsguard)
    facts = told["checks"][0]["facts"]
    assert {facts[fact]["state"] for fact in FACTS[:2]} == {"unknown"}
    found = {finding["rule"] for finding in told["findings"]}
    assert not found & {"accumulation-ignored", "implicit-clipping", "clipping-not-applied"}


def test_an_auto_is_not_called_absent(tmp_path: Path, dsguard: Dsguard) -> None:
    messages = [
        finding["message"]
        for finding in report("auto", "", tmp_path, dsguard)["findings"]
        if finding["rule"] == "accumulation-ignored"
    ]
    assert ['ds.json says "auto"' in message for message in messages] == [True]
