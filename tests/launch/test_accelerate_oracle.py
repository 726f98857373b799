"""``accelerate launch`` against the real one: its parser, and what it would start."""

from __future__ import annotations

import logging
import random
from pathlib import Path
from typing import Any

import pytest

from dsguard.launch.accelerate_config import DISTRIBUTED_TYPES, KEYS
from dsguard.launch.launchers.accelerate_options import OPTIONS

from .conftest import Launch
from .facts import kinds, refused, value
from .random_options import disagreement, listed, random_words, run_parser, tabled
from .real_launchers import accelerate_world_size

pytest.importorskip("ruamel.yaml", reason="the yaml extra is not installed")
launching = pytest.importorskip("accelerate.commands.launch", reason="accelerate is not installed")
pytestmark = pytest.mark.deepspeed


def test_the_option_table_is_that_of_the_real_parser() -> None:
    real = listed(launching.launch_command_parser())
    ours = tabled(OPTIONS)
    assert set(ours) == set(real)
    own_types = ("bool", "<lambda>", "str_to_bool")
    for name, (dest, takes_value, kind, choices) in real.items():
        if not name.startswith(("--no_tpu", "--no-tpu")):  # Shares its dest with --tpu_cluster.
            assert ours[name][0] == dest
        assert (ours[name][1], ours[name][3]) == (takes_value, choices)
        assert kind in own_types or ours[name][2] == kind, name


def test_the_keys_of_the_config_file_are_the_real_ones() -> None:
    from accelerate.commands.config.config_args import ClusterConfig
    from accelerate.utils import DistributedType

    old = {"dynamo_backend", "fp16"}  # Taken out before the keys are checked.
    assert set(ClusterConfig.__dataclass_fields__) | old == KEYS
    assert {str(kind.value) for kind in DistributedType} | {"TP"} == DISTRIBUTED_TYPES


def test_random_options_are_parsed_alike() -> None:
    generator = random.Random(29)
    parser = launching.launch_command_parser()

    def parse(words: list[str]) -> Any:
        namespace = parser.parse_args(words)
        vars(namespace).pop("nondefault", None)
        return namespace

    script, rest = "training_script", "training_script_args"
    defaults = run_parser(parse, ["t.py"], script, rest)
    assert defaults is not None
    accepted = 0
    for _ in range(1500):
        words = random_words(generator, OPTIONS)
        if any(word.startswith(("--no_tpu", "--no-tpu", "--tpu_cl", "--tpu-cl")) for word in words):
            continue  # Two flags with one dest.
        parsed = run_parser(parse, words, script, rest)
        accepted += parsed is not None
        assert disagreement(words, OPTIONS, parsed, defaults) == ""
    assert accepted > 200


def random_yaml(generator: random.Random) -> str:
    lines = [f"distributed_type: {generator.choice(TYPES)}"]
    for name, choices in (
        ("num_processes", (1, 2, 7, 8)),
        ("num_machines", (1, 2)),
        ("machine_rank", (0, 1)),
    ):
        if generator.random() < 0.7:
            lines.append(f"{name}: {generator.choice(choices)}")
    deepspeed = []
    if generator.random() < 0.4:
        launcher = generator.choice(("pdsh", "standard", "nossh"))
        deepspeed.append(f"  deepspeed_multinode_launcher: {launcher}")
    if generator.random() < 0.3:
        deepspeed.append("  deepspeed_hostfile: hosts")
    if deepspeed:
        lines += ["deepspeed_config:", *deepspeed]
    if generator.random() < 0.05:
        lines.append("num_process: 2")
    return "\n".join(lines) + "\n"


TYPES = ("DEEPSPEED", "DEEPSPEED", "MULTI_GPU", "FSDP", "'NO'", "NO", "MULTI_CPU", "MEGATRON_LM")
OPTION_CHOICES = (
    ["--num_processes", "1"], ["--num_processes", "2"], ["--num-processes", "7"],
    ["--num_processes", "0"], ["--num_machines", "2"], ["--num_machines", "1"],
    ["--machine_rank", "0"], ["--machine_rank", "1"], ["--multi_gpu"], ["--use_deepspeed"],
    ["--use_fsdp"], ["--cpu"], ["--deepspeed_hostfile", "hosts"], ["--use_parallelism_config"],
    ["--deepspeed_multinode_launcher", "standard"], ["--use_megatron_lm"], ["-m"],
)  # fmt: skip


def test_random_launches_start_as_many_processes(
    launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    (tmp_path / "hosts").write_text("a slots=4\nb slots=4\n")
    generator = random.Random(31)
    outcomes = {"refused": 0, "started": 0, "unknown": 0}
    for _ in range(700):
        words = []
        files = {}
        if generator.random() < 0.6:
            files["acc.yaml"] = random_yaml(generator)
            words += ["--config_file", "acc.yaml"]
        for option in generator.sample(OPTION_CHOICES, k=generator.randint(0, 4)):
            words += option
        words.append("t.py")
        devices = generator.choice([1, 2, 8])
        context = launch(["accelerate", "launch", *words], files, devices_per_node=devices)
        expected = accelerate_world_size(words, devices)
        told = f"{words} {files} {devices}: {kinds(context)} {value(context.world_size)}"
        actual = value(context.world_size)
        if "without ranks" in str(actual):
            outcomes["unknown"] += 1
        elif expected is None:
            assert refused(context), told
            outcomes["refused"] += 1
        else:
            assert actual == expected, f"{told}, not {expected}"
            outcomes["started"] += 1
    assert outcomes["refused"] > 100
    assert outcomes["started"] > 200
