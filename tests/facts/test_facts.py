"""Facts of whole (config, launch) pairs: the value, who said it, who lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dsguard import check_text
from dsguard.model.fact import Conflict, Fact, FactName, Known, Unknown

PLAIN = "deepspeed --include localhost:0,1,2,3 train.py --deepspeed_config ds.json"
TRAINER = "torchrun --nproc_per_node 4 train.py --deepspeed ds.json"


def fact(
    config: dict[str, Any], launch: str | None, name: FactName, folder: Path, **options: Any
) -> Fact:
    options.setdefault("target", "0.19.8")
    report = check_text(json.dumps(config), launch=launch, folder=folder, **options)
    return report.checks[0].facts[name]


def known(
    config: dict[str, Any], launch: str | None, name: FactName, folder: Path, **options: Any
) -> Any:
    found = fact(config, launch, name, folder, **options)
    assert isinstance(found, Known), found
    return found.value


MICRO: dict[str, Any] = {"train_micro_batch_size_per_gpu": 2}
AUTO: dict[str, Any] = {
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto",
    "bf16": {"enabled": "auto"},
    "zero_optimization": {"stage": 2},
}


@pytest.mark.parametrize(
    ("config", "launch", "name", "value"),
    [
        (MICRO, PLAIN, "world_size", 4),
        (MICRO, PLAIN, "train_batch_size", 8),
        (MICRO, PLAIN, "gradient_accumulation_steps", 1),
        (MICRO, PLAIN, "samples_per_step", 8),
        (MICRO, PLAIN + " --micro_batch_size 3", "samples_per_step", 12),
        (MICRO, PLAIN, "front_end", "plain"),
        (MICRO, PLAIN, "config_file", "ds.json"),
        (MICRO, PLAIN, "script", "train.py"),
        (MICRO, PLAIN, "launcher", "deepspeed"),
        (MICRO | {"sequence_parallel_size": 2}, PLAIN, "data_parallel_size", 2),
        (MICRO | {"sequence_parallel_size": 2}, PLAIN, "sequence_parallel_size", 2),
        (
            MICRO | {"sequence_parallel_size": 4, "data_parallel_size": 1},
            PLAIN,
            "data_parallel_size",
            1,
        ),
        (MICRO | {"tensor_parallel": {"autotp_size": 2}}, PLAIN, "data_parallel_size", 4),
        (MICRO | {"tensor_parallel": {"autotp_size": 2}}, PLAIN, "tensor_parallel_size", 2),
        (MICRO | {"fp16": {"enabled": "true"}}, PLAIN, "precision", "fp16"),
        (MICRO | {"bfloat16": {"enabled": True}}, PLAIN, "precision", "bf16"),
        (MICRO | {"bf16": {"enabled": "auto"}}, PLAIN, "precision", "fp32"),
        (MICRO | {"zero_optimization": True}, PLAIN, "zero_stage", 1),
        (MICRO | {"zero_optimization": {"stage": "auto"}}, PLAIN, "zero_stage", 0),
        (
            MICRO | {"zero_optimization": {"stage": 2, "cpu_offload": True}},
            PLAIN,
            "offload_optimizer",
            "cpu",
        ),
        (AUTO, TRAINER + " --per_device_train_batch_size 3", "micro_batch_size", 3),
        (AUTO, TRAINER + " --gradient_accumulation_steps 5", "gradient_accumulation_steps", 5),
        (
            AUTO,
            TRAINER + " --per_device_train_batch_size 3 --gradient_accumulation_steps 5",
            "train_batch_size",
            60,
        ),
        (AUTO, TRAINER + " --max_grad_norm 0.3", "gradient_clipping", 0.3),
        (AUTO, TRAINER + " --bf16", "precision", "bf16"),
    ],
)
def test_what_is_known(
    config: dict[str, Any], launch: str, name: FactName, value: object, tmp_path: Path
) -> None:
    assert known(config, launch, name, tmp_path) == value


@pytest.mark.parametrize(
    ("config", "launch", "name", "reason"),
    [
        (MICRO, None, "world_size", "no launch command was given"),
        (MICRO, None, "train_batch_size", "no launch command was given"),
        (MICRO, "deepspeed train.py", "world_size", "device"),
        (AUTO, None, "front_end", "nothing names the trainer"),
        (AUTO, None, "micro_batch_size", "a trainer fills it"),
        (AUTO, TRAINER, "micro_batch_size", "TrainingArguments"),
        (AUTO, PLAIN, "micro_batch_size", "does not fill"),
        (
            MICRO,
            PLAIN + " --tensor-model-parallel-size 2",
            "data_parallel_size",
            "--tensor-model-parallel-size 2",
        ),
        (MICRO, PLAIN + " --batch_size 16", "samples_per_step", "one rank's samples or all"),
        (MICRO, PLAIN + " --batch_size $BATCH", "samples_per_step", "--batch_size decides"),
        (MICRO | {"sequence_parallel_size": 2}, PLAIN, "samples_per_step", "share a sequence"),
        (
            MICRO | {"train_batch_size": 9},
            PLAIN,
            "samples_per_step",
            "stops over the batch sizes",
        ),
        (MICRO, PLAIN, "optimizer", "names no optimizer"),
        (MICRO, PLAIN, "learning_rate", "names no optimizer"),
    ],
)
def test_what_stays_unknown(
    config: dict[str, Any], launch: str | None, name: FactName, reason: str, tmp_path: Path
) -> None:
    found = fact(config, launch, name, tmp_path)
    assert isinstance(found, Unknown)
    assert reason in found.reason


def test_the_trainer_stops_over_two_values(tmp_path: Path) -> None:
    config = {"gradient_accumulation_steps": 1, "train_micro_batch_size_per_gpu": "auto"}
    launch = TRAINER + " --gradient_accumulation_steps 8"
    found = fact(config, launch, "gradient_accumulation_steps", tmp_path)
    assert isinstance(found, Conflict)
    assert [candidate.value for candidate in found.candidates] == [1, 8]


@pytest.mark.parametrize(("target", "clipping"), [("0.19.2", 0.0), ("0.19.3", 1.0)])
def test_clipping_by_default_depends_on_the_release(
    target: str, clipping: float, tmp_path: Path
) -> None:
    assert known(MICRO, PLAIN, "gradient_clipping", tmp_path, target=target) == clipping


def test_world_size_option_wins_and_keeps_the_loser(tmp_path: Path) -> None:
    found = fact(MICRO, PLAIN, "world_size", tmp_path, world_size=16)
    assert isinstance(found, Known)
    assert found.value == 16
    assert [loser.value for loser in found.ignored] == [4]


def test_a_script_that_spells_the_config_is_its_reader(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(json.dumps(MICRO))
    (tmp_path / "train.py").write_text('deepspeed.initialize(config="ds.json")\n')
    from dsguard import check_file

    report = check_file(
        tmp_path / "ds.json",
        launch="deepspeed --include localhost:0 train.py",
        folder=tmp_path,
        target="0.19.8",
    )
    found = report.checks[0].facts["config_file"]
    assert isinstance(found, Known)
    assert found.origin.describe() == "train.py:1:30"
    assert report.findings == []


def test_elasticity_overwrites_the_batch_sizes(tmp_path: Path) -> None:
    config = MICRO | {"elasticity": {"enabled": True}}
    found = fact(config, PLAIN, "train_batch_size", tmp_path, target="0.19.7")
    assert found == Unknown("elasticity computes the batch sizes")
    assert known(config, PLAIN, "train_batch_size", tmp_path) == 8
