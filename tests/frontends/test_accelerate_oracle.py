"""What dsguard says of Accelerate's own loop, held to the real ``Accelerator``.

The launcher's variables come from ``accelerate launch`` itself, the rest from ``prepare()`` on a
small model.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.conftest import Dsguard
from tests.frontends.judged import CONFIG, REAL, agree_with_built, judge
from tests.frontends.loop_cases import CASES, ZERO, LoopCase
from tests.frontends.test_transformers_oracle import agree

pytestmark = REAL


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_accelerate_agrees(case: LoopCase, dsguard: Dsguard, tmp_path: Path) -> None:
    real = pytest.importorskip("tests.frontends.real")
    (tmp_path / CONFIG).write_text(case.text, encoding="utf-8")
    (tmp_path / "train.py").write_text(case.script, encoding="utf-8")
    run = real.own_loop(
        shlex.split(case.launch),
        tmp_path,
        case.world_size,
        accumulation=case.accumulation,
        optimizer=case.optimizer,
    )
    told = judge(dsguard, tmp_path, f"accelerate launch {case.launch} train.py {case.words}")
    assert told.known["front_end"] == "accelerate"
    if run.refused is None:
        # What the loader yields and what DeepSpeed counts may differ: the fact is the latter.
        run = run._replace(micro=run.config.train_micro_batch_size_per_gpu)
    agree(told, run, case.facts_apart)


@pytest.mark.parametrize("config", [4, "auto", None])
@pytest.mark.parametrize("option", ["", "--gradient_accumulation_steps 3"])
def test_the_count_that_the_script_hands_over(
    config: object, option: str, dsguard: Dsguard, tmp_path: Path
) -> None:
    real = pytest.importorskip("tests.frontends.real")
    written = {"gradient_accumulation_steps": config} if config is not None else {}
    case = LoopCase("", {**ZERO, "train_micro_batch_size_per_gpu": 2, **written}, options=option)
    (tmp_path / CONFIG).write_text(case.text, encoding="utf-8")
    (tmp_path / "train.py").write_text(
        "from accelerate import Accelerator\n\nAccelerator(gradient_accumulation_steps=8)\n"
    )
    run = real.own_loop(shlex.split(case.launch), tmp_path, 2, accumulation=8)
    told = judge(dsguard, tmp_path, f"accelerate launch {case.launch} train.py")
    counted = run.config.gradient_accumulation_steps
    assert told.known["gradient_accumulation_steps"] == counted
    # Asked for by the script or, over it, by the launcher.
    asked = 3 if option else 8
    assert ("accumulation-ignored" in told.rules) == (counted != asked)


PLUGINS = [
    "zero_stage=3, gradient_accumulation_steps=4, offload_param_device='cpu'",
    "zero_stage=2, gradient_clipping=0.5, offload_optimizer_device='cpu'",
    "zero_stage=1",
    "gradient_accumulation_steps=2",
]


@pytest.mark.parametrize("passed", PLUGINS)
def test_the_config_that_a_plugin_builds(passed: str) -> None:
    accelerate = pytest.importorskip("accelerate")
    plugin = accelerate.DeepSpeedPlugin(**eval(f"dict({passed})"))
    agree_with_built(
        f"from accelerate import DeepSpeedPlugin\nDeepSpeedPlugin({passed})\n",
        plugin.deepspeed_config,
    )


def test_options_without_use_deepspeed_reach_nobody(dsguard: Dsguard, tmp_path: Path) -> None:
    """``accelerate launch`` exports nothing of DeepSpeed then, so the script trains without."""
    real = pytest.importorskip("tests.frontends.real")
    (tmp_path / CONFIG).write_text(CASES[0].text, encoding="utf-8")
    options = f"--multi_gpu --num_processes 2 --deepspeed_config_file {CONFIG}"
    environment = real.launch_environment(shlex.split(options), tmp_path)
    assert not [name for name in environment if "DEEPSPEED" in name]
    told = judge(dsguard, tmp_path, f"accelerate launch {options} train.py")
    assert "deepspeed-switched-off" in told.rules
