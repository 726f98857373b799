"""Accelerate's config file against the real Accelerate: options merged, and the config built."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import random
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from dsguard.launch.accelerate_config import _HAVE_DEFAULTS, MIXED_PRECISIONS, config_options
from dsguard.launch.context import LaunchContext
from dsguard.launch.jobs.keys import text_of
from dsguard.launch.scan import Scan
from dsguard.model.fact import OriginKind
from dsguard.model.source import Source
from dsguard.reading.yaml import parse_yaml

from ..conftest import Launch
from ..facts import kinds

pytest.importorskip("ruamel.yaml", reason="the yaml extra is not installed")
launching = pytest.importorskip("accelerate.commands.launch", reason="accelerate is not installed")
pytestmark = pytest.mark.deepspeed

DS_JSON = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 1}}
BLOCK = {
    "zero_stage": (0, 1, 2, 3),
    "gradient_accumulation_steps": (1, 4, "auto"),
    "gradient_clipping": (1.0, 0.5, 0, 0.0, 1, "auto", "AUTO"),
    "offload_optimizer_device": ("none", "cpu", "nvme", "CPU"),
    "offload_param_device": ("none", "cpu", "nvme"),
    "offload_optimizer_nvme_path": ("/nvme",),
    "offload_param_nvme_path": ("none", "/nvme"),
    "zero3_init_flag": (True, False, "yes"),
    "zero3_save_16bit_model": (True, False, "true", "false", "no"),
    "deepspeed_multinode_launcher": ("standard",),
    "deepspeed_config_file": ("ds.json",),
    "zero_stagee": (3,),
}
TOP = {
    "mixed_precision": ("no", "bf16", "fp16", "BF16", "'no'", "no ", "fp32", False),
    "num_processes": (1, 2, 8),
    "num_machines": (1,),
    "machine_rank": (0,),
    "same_network": (True, False),
    "rdzv_backend": ("static", "c10d"),
    "main_training_function": ("main", "train"),
    "main_process_port": (29501,),
    "downcast_bf16": ("'no'",),
    "gpu_ids": ("all", "'0,1'"),
    "debug": (True, False),
    "use_cpu": (False,),
    "fsdp_config": ("{}", "{fsdp_offload_params: true}", "{version: 2}"),
    "dynamo_config": ("{dynamo_backend: INDUCTOR}", "{mode: default}"),
}
TYPED = (
    ["--zero_stage", "1"], ["--gradient_accumulation_steps", "2"], ["--gradient_clipping", "0.3"],
    ["--offload_optimizer_device", "cpu"], ["--zero3_save_16bit_model", "true"],
    ["--use_deepspeed"], ["--multi_gpu", "--num_processes", "2"], ["--mixed_precision", "fp16"],
    ["--deepspeed_config_file", "ds.json"], ["--num_processes", "4"], ["--gpu_ids", "0,1,2"],
)  # fmt: skip
DEEPSPEED_OPTIONS = (*BLOCK, "deepspeed_hostfile", "deepspeed_moe_layer_cls_names")


def random_file(generator: random.Random) -> str:
    kind = generator.choice(("DEEPSPEED", "DEEPSPEED", "DEEPSPEED", "MULTI_GPU", "FSDP"))
    lines = [f"distributed_type: {kind}"]
    for key, choices in TOP.items():
        if generator.random() < (0.9 if key == "num_processes" else 0.25):
            lines.append(f"{key}: {written(generator.choice(choices))}")
    if generator.random() < 0.9:
        lines.append("deepspeed_config:")
        chance = generator.choice((0.1, 0.3, 0.6))
        for key, choices in BLOCK.items():
            if generator.random() < (0.25 if key == "deepspeed_config_file" else chance):
                lines.append(f"  {key}: {written(generator.choice(choices))}")
        if lines[-1] == "deepspeed_config:":
            lines[-1] += " {}"
    return "\n".join(lines) + "\n"


def written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def real_arguments(words: list[str]) -> tuple[Any, dict[str, str]] | None:
    """The options after the real merge and the environment of the processes; None where it stops.

    For a launch without DeepSpeed there is no environment of interest.
    """
    import accelerate.utils.launch as preparing
    import torch

    started: list[Any] = []
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        for name in ("simple", "multi_gpu", "deepspeed", "tpu", "tpu_pod", "sagemaker"):
            record = lambda *args, way=name: started.append((way, args[-1]))  # noqa: E731
            enter(mock.patch.object(launching, f"{name}_launcher", record))
        enter(mock.patch.object(launching, "default_config_file", "/nonexistent/config.yaml"))
        enter(mock.patch.object(launching, "is_bf16_available", return_value=True))
        enter(mock.patch.object(preparing, "is_port_in_use", return_value=False))
        enter(mock.patch.object(torch.cuda, "device_count", return_value=8))
        enter(contextlib.redirect_stdout(io.StringIO()))
        enter(contextlib.redirect_stderr(io.StringIO()))
        try:
            launching.launch_command(launching.launch_command_parser().parse_args(words))
            ((way, args),) = started
            merged = dict(vars(args))
            if way != "deepspeed":
                prepare = {"simple": preparing.prepare_simple_launcher_cmd_env}.get(way)
                (prepare or preparing.prepare_multi_gpu_env)(args)
                return merged, {}
            _, environment = preparing.prepare_deepspeed_cmd_env(args)
        except (Exception, SystemExit):
            return None
    return merged, environment


def real_plugin(environment: dict[str, str]) -> dict[str, Any] | None:
    """The config that the plugin of a started process has; None where it stops."""
    from accelerate.utils import DeepSpeedPlugin

    with mock.patch.dict(os.environ, environment, clear=True):
        try:
            config: dict[str, Any] = DeepSpeedPlugin().deepspeed_config
        except ValueError:
            return None
    config.pop("steps_per_print")
    return config


@pytest.mark.filterwarnings("ignore:DeepSpeed Zero3 Init flag")
def test_random_files_and_options_come_to_the_same_options_and_config(
    launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    (tmp_path / "ds.json").write_text(json.dumps(DS_JSON))
    generator = random.Random(41)
    seen = {"stops": 0, "built": 0, "file": 0, "file and values": 0, "without": 0}
    for _ in range(400):
        text = random_file(generator)
        words = ["--config_file", "acc.yaml"]
        for option in generator.sample(TYPED, k=generator.choice((0, 0, 1, 2))):
            words += option
        words.append("t.py")
        context = launch(["accelerate", "launch", *words], {"acc.yaml": text}, devices_per_node=8)
        told = f"{words}\n{text}\n{kinds(context)}"
        real = real_arguments(words)
        if real is None:
            assert any(trouble.refused for trouble in context.troubles), told
            seen["stops"] += 1
            continue
        merged, environment = real
        compare_options(context, merged, told)
        if not environment:
            assert context.launcher_arguments.get("use_deepspeed") is None, told
            assert context.inline_config is None, told
            seen["without"] += 1
            continue
        config = real_plugin(environment)
        if merged["deepspeed_config_file"] is None:
            assert context.inline_config is not None, told
            assert context.inline_config.value == config, told
            seen["built"] += 1
        else:
            refused = "config-file-with-values" in kinds(context)
            assert refused == (config is None), told
            seen["file and values" if refused else "file"] += 1
    assert min(seen.values()) > 5, seen


def compare_options(context: LaunchContext, merged: dict[str, Any], told: str) -> None:
    """Every option that we take from the file has the real value, and none for DeepSpeed lacks."""
    options = context.launcher_arguments
    for argument in options:
        if argument.kind is OriginKind.JOBFILE and argument.value is not None:
            assert text_of(merged[argument.name]) == argument.value, f"{argument.name}\n{told}"
        elif argument.kind is OriginKind.JOBFILE:
            assert merged[argument.name] is True, f"{argument.name}\n{told}"
    if merged["use_deepspeed"]:
        given = {name for name in DEEPSPEED_OPTIONS if merged.get(name) is not None}
        assert given == {a.name for a in options} & set(DEEPSPEED_OPTIONS), told
    precision = options.get("mixed_precision")
    assert text_of(merged["mixed_precision"]) == (precision.value if precision else "no"), told


def test_options_with_defaults_never_come_from_the_file() -> None:
    parser = launching.launch_command_parser()
    defaults = {action.dest: action.default for action in parser._actions}
    from dsguard.launch.accelerate_config import KEYS

    assert {key for key in KEYS if defaults.get(key) is not None} == _HAVE_DEFAULTS


def test_the_names_of_precisions_are_the_real_ones() -> None:
    from accelerate.utils import PrecisionType

    assert set(PrecisionType.list()) == set(MIXED_PRECISIONS)


def test_a_null_counts_for_the_check_but_gives_no_option() -> None:
    text = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage:\nnum_processes: 2\n"
    document = parse_yaml(Source("acc.yaml", text))
    names = [a.name for a in config_options(document, Scan((), None, ()), deepspeed=True)]
    assert names == ["use_deepspeed", "num_processes"]
