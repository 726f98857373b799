"""What dsguard says of a config for Lightning, held to the strategy's own methods.

The strategy runs on GPUs only, so the part that edits the config is called by itself, with a
Lightning Trainer of which only the three values that it reads exist.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import Dsguard
from tests.frontends.judged import CONFIG, REAL, agree_with_built, judge

pytestmark = REAL

ZERO = {"zero_optimization": {"stage": 2}}
LOADER_BATCH = 2
ACCUMULATE = 4
CLIP = 0.3

CASES: dict[str, dict[str, Any] | str] = {
    "only zero": ZERO,
    "no zero": {"train_micro_batch_size_per_gpu": 2},
    "micro batch": {**ZERO, "train_micro_batch_size_per_gpu": 2},
    "another micro batch": {**ZERO, "train_micro_batch_size_per_gpu": 8},
    "accumulation": {**ZERO, "gradient_accumulation_steps": 4},
    "accumulation auto": {**ZERO, "gradient_accumulation_steps": "auto"},
    "accumulation null": {**ZERO, "gradient_accumulation_steps": None},
    "micro batch auto": {**ZERO, "train_micro_batch_size_per_gpu": "auto"},
    "total auto": {**ZERO, "train_batch_size": "auto", "train_micro_batch_size_per_gpu": 2},
    "clipping": {**ZERO, "train_micro_batch_size_per_gpu": 2, "gradient_clipping": 0.7},
    "stage auto": {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": "auto"}},
    "bf16": {**ZERO, "train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True}},
    "removed block": {**ZERO, "elasticity": {"enabled": False}},
    "comment": '{\n  // ours\n  "zero_optimization": {"stage": 2}\n}',
    "trailing comma": '{"zero_optimization": {"stage": 2},}',
    "repeated key": '{"zero_optimization": {"stage": 1}, "zero_optimization": {"stage": 2}}',
}


@pytest.mark.parametrize("config", CASES.values(), ids=CASES)
def test_lightning_agrees(config: dict[str, Any] | str, dsguard: Dsguard, tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    text = config if isinstance(config, str) else json.dumps(config)
    (tmp_path / CONFIG).write_text(text, encoding="utf-8")
    world_size = 2
    try:
        read = lightning_config(tmp_path / CONFIG, world_size)
        refused = None
    except Exception as error:
        refused = f"{type(error).__name__}: {error}"
    options = f"--front-end lightning --world-size {world_size}"
    told = judge(dsguard, tmp_path, "python train.py", options)
    assert bool(told.refused) == (refused is not None), (told.refused, refused)
    if refused is not None:
        return
    real = {
        "train_batch_size": read.train_batch_size,
        "micro_batch_size": read.train_micro_batch_size_per_gpu,
        "gradient_accumulation_steps": read.gradient_accumulation_steps,
        "gradient_clipping": read.gradient_clipping,
        "zero_stage": read.zero_optimization_stage,
        "precision": "bf16" if read.bfloat16_config.enabled else "fp32",
    }
    ours = {name: told.known[name] for name in real if name in told.known}
    assert ours == {name: real[name] for name in ours}


SCRIPT = f"""
from lightning.pytorch import Trainer
from lightning.pytorch.strategies import DeepSpeedStrategy

Trainer(
    strategy=DeepSpeedStrategy(config="{CONFIG}"),
    accumulate_grad_batches={ACCUMULATE},
    gradient_clip_val={CLIP},
    precision="{{}}",
)
"""


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_what_the_trainer_is_given_counts(precision: str, dsguard: Dsguard, tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    (tmp_path / CONFIG).write_text(json.dumps({**ZERO, "train_micro_batch_size_per_gpu": 2}))
    (tmp_path / "train.py").write_text(SCRIPT.format(precision))
    read = lightning_config(tmp_path / CONFIG, 2, precision)
    told = judge(dsguard, tmp_path, "torchrun --nproc_per_node=2 train.py").known
    assert told["front_end"] == "lightning"
    assert told["gradient_accumulation_steps"] == read.gradient_accumulation_steps == ACCUMULATE
    assert told["gradient_clipping"] == read.gradient_clipping == CLIP
    assert told["train_batch_size"] == read.train_batch_size
    assert told["precision"] == ("bf16" if read.bfloat16_config.enabled else "fp32")


@pytest.mark.parametrize("passed", ["devices=4", "devices=2, num_nodes=3", "devices='2'"])
def test_the_trainer_starts_its_processes(passed: str, dsguard: Dsguard, tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")
    given = eval(f"dict({passed})")
    if isinstance(given["devices"], str):  # on GPUs only
        parser = pytest.importorskip("lightning.fabric.utilities.device_parser")
        real = parser._normalize_parse_gpu_string_input(given["devices"])
    else:
        real = lightning.Trainer(accelerator="cpu", strategy="ddp", **given).world_size
    (tmp_path / CONFIG).write_text(json.dumps({**ZERO, "train_micro_batch_size_per_gpu": 2}))
    script = f"import lightning as L\nL.Trainer({passed}, strategy='deepspeed')\n"
    (tmp_path / "train.py").write_text(script)
    assert judge(dsguard, tmp_path, "python train.py").known["world_size"] == real


@pytest.mark.parametrize(
    ("launch", "passed", "ranks"),
    [
        ("python train.py", "", None),
        ("python train.py", "devices='auto'", None),
        ("python train.py", "devices=-1", None),
        ("python train.py", "devices=[0, 2, 5]", 3),
        ("python train.py", "devices='1,3'", 2),
        ("python train.py", "devices=count()", None),
        ("python train.py --gpus 4", "devices=args.gpus", 4),
        ("WORLD_SIZE=6 python train.py", "devices=2", 6),
        ("torchrun --nproc_per_node 4 train.py", "devices='auto'", 4),
        ("srun -N 2 --ntasks-per-node 4 python train.py", "devices=4, num_nodes=2", 8),
    ],
)
def test_who_starts_the_processes(
    launch: str, passed: str, ranks: int | None, dsguard: Dsguard, tmp_path: Path
) -> None:
    (tmp_path / CONFIG).write_text(json.dumps({**ZERO, "train_micro_batch_size_per_gpu": 2}))
    (tmp_path / "train.py").write_text(
        "import argparse\nimport lightning as L\nfrom machine import count\n"
        "parser = argparse.ArgumentParser()\nparser.add_argument('--gpus', type=int)\n"
        f"args = parser.parse_args()\nL.Trainer({passed}, strategy='deepspeed')\n".replace(
            "(, ", "("
        )
    )
    assert judge(dsguard, tmp_path, launch).known.get("world_size") == ranks


STRATEGIES = [
    "",
    "stage=3, offload_optimizer=True, offload_parameters=True",
    "stage=2, offload_optimizer=True, offload_optimizer_device='nvme'",
    "stage=1, offload_parameters=False",
]
NAMES = [
    *("deepspeed", "deepspeed_stage_1", "deepspeed_stage_2", "deepspeed_stage_2_offload"),
    *("deepspeed_stage_3", "deepspeed_stage_3_offload"),
]


@pytest.mark.parametrize("passed", STRATEGIES)
def test_the_config_that_a_strategy_builds(passed: str) -> None:
    strategies = pytest.importorskip("lightning.pytorch.strategies")
    strategy = strategies.DeepSpeedStrategy(**eval(f"dict({passed})"))
    start = "from pytorch_lightning.strategies import DeepSpeedStrategy\n"
    agree_with_built(f"{start}DeepSpeedStrategy({passed})\n", strategy.config)


@pytest.mark.parametrize("name", NAMES)
def test_the_config_that_a_name_of_a_strategy_stands_for(name: str) -> None:
    strategies = pytest.importorskip("lightning.pytorch.strategies")
    strategy = strategies.StrategyRegistry.get(name)
    text = f"import lightning as L\nL.Trainer(strategy={name!r})\n"
    agree_with_built(text, strategy.config)


def lightning_config(path: Path, world_size: int, precision: str = "32-true") -> Any:
    """DeepSpeed's reading of the config after Lightning's strategy has edited it."""
    from lightning.pytorch.plugins.precision.deepspeed import DeepSpeedPrecision
    from lightning.pytorch.strategies import DeepSpeedStrategy

    from tests.oracle import ranks

    loader = SimpleNamespace(batch_sampler=SimpleNamespace(batch_size=LOADER_BATCH))
    source = SimpleNamespace(is_defined=lambda: True, dataloader=lambda: loader)
    trainer = SimpleNamespace(
        accumulate_grad_batches=ACCUMULATE,
        gradient_clip_val=CLIP,
        fit_loop=SimpleNamespace(_data_source=source),
    )
    strategy = DeepSpeedStrategy(config=str(path), precision_plugin=DeepSpeedPrecision(precision))
    strategy._lightning_module = SimpleNamespace(trainer=trainer)
    strategy._format_config()
    from deepspeed.runtime.config import DeepSpeedConfig

    with ranks(world_size):
        return DeepSpeedConfig(strategy.config)
