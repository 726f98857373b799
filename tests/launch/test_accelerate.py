"""``accelerate launch``: options, its YAML, and the processes of each machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dsguard.launch.environ import Environ
from dsguard.model.fact import Unknown

from .conftest import Launch
from .facts import kinds, pointed_at, refused, source, value

pytest.importorskip("ruamel.yaml", reason="the yaml extra is not installed")

YAML = """\
compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
deepspeed_config:
  zero_stage: 3
machine_rank: 0
num_machines: 1
num_processes: 8
"""
TWO = YAML.replace("num_machines: 1", "num_machines: 2")
STANDARD = TWO.replace("zero_stage: 3", "deepspeed_multinode_launcher: standard")


@pytest.mark.parametrize(
    ("command", "nodes", "per_node", "world_size"),
    [
        ("accelerate launch --num_processes 4 t.py", 1, 4, 4),
        ("accelerate launch --num-processes=4 --multi-gpu t.py", 1, 4, 4),
        ("accelerate launch --use_deepspeed --num_processes 1 t.py", 1, 1, 1),
        ("accelerate launch --num_processes 1 t.py", 1, 1, 1),
        ("accelerate launch --multi_gpu --num_processes 8 --num_machines 2 --machine_rank 1 t.py",
         2, 4, 8),
        ("accelerate launch --use_fsdp --num_processes 8 --num_machines 2 --machine_rank 0 t.py",
         2, 4, 8),
        ("accelerate launch --cpu t.py", 1, 1, 1),
        ("accelerate launch --cpu --mpirun_hostfile h --num_processes 4 t.py", 1, 4, 4),
    ],
)  # fmt: skip
def test_processes_by_options(
    launch: Launch, command: str, nodes: int, per_node: int, world_size: int
) -> None:
    context = launch(command, devices_per_node=8)
    assert kinds(context) == []
    assert value(context.nodes) == nodes
    assert value(context.processes_per_node) == per_node
    assert value(context.world_size) == world_size


def test_processes_by_the_config_file(launch: Launch) -> None:
    context = launch("accelerate launch --config_file acc.yaml t.py --x 1", {"acc.yaml": YAML})
    assert kinds(context) == []
    assert value(context.world_size) == 8
    assert source(context.world_size) == "jobfile: acc.yaml:7:16"
    assert context.launcher_config is not None
    assert context.launcher_config.value["deepspeed_config"] == {"zero_stage": 3}
    typed = launch("accelerate launch --config_file acc.yaml --num_processes 4 t.py")
    assert source(typed.world_size) == "launch: --num_processes"


def test_a_default_config_file_is_read_where_one_is_given(launch: Launch, tmp_path: Path) -> None:
    files, here = {"acc.yaml": YAML}, Environ(accelerate_config=tmp_path / "acc.yaml")
    assert value(launch("accelerate launch t.py", files, environ=here).world_size) == 8
    other = launch("accelerate launch --cpu t.py", environ=here)
    assert other.launcher_config is None


def test_machines_share_the_processes_and_drop_the_rest(launch: Launch) -> None:
    command = "accelerate launch --config_file acc.yaml --num_processes 7 t.py"
    context = launch(command, {"acc.yaml": STANDARD})
    assert kinds(context) == ["processes-dropped"]
    assert pointed_at(context, "processes-dropped") == "--num_processes 7"
    assert value(context.nodes) == 2
    assert value(context.processes_per_node) == 3
    assert source(context.processes_per_node) == "derived: 7 processes // 2 machines = 3"
    assert source(context.world_size) == "derived: 2 nodes × 3 processes per node = 6"


def test_pdsh_without_a_hostfile_leaves_every_machine_alone(launch: Launch) -> None:
    context = launch("accelerate launch --config_file acc.yaml t.py", {"acc.yaml": TWO})
    assert kinds(context) == ["pdsh-without-hostfile"]
    assert not refused(context)
    assert value(context.world_size) == 4


def test_hosts_count_not_machines_with_a_hostfile(launch: Launch) -> None:
    files = {"acc.yaml": TWO, "hosts": "a slots=4\nb slots=4\nc slots=4\n"}
    options = "--config_file acc.yaml --deepspeed_hostfile hosts"
    context = launch(f"accelerate launch {options} t.py", files)
    assert kinds(context) == []
    assert value(context.world_size) == 12
    context = launch(f"accelerate launch {options} --deepspeed_inclusion_filter a:0,1@b t.py")
    assert value(context.world_size) == 6
    context = launch(f"accelerate launch {options} --deepspeed_inclusion_filter d t.py")
    assert kinds(context) == ["unknown-host"]


@pytest.mark.parametrize(
    ("options", "kind", "pointed"),
    [
        ("--use_deepspeed --multi_gpu --num_processes 2", "conflicting-options", "--use_deepspeed"),
        ("--multi_gpu --num_processes 1", "conflicting-options", "--multi_gpu"),
        ("--use_parallelism_config --num_processes 2", "conflicting-options",
         "--use_parallelism_config"),
        ("--num_processes 2 --no_python -m", "conflicting-options", "--no_python"),
        ("--use_deepspeed --num_processes 0", "bad-value", "--num_processes 0"),
        ("--num_machines 2 --num_processes 4", "machine-rank-missing", "--num_machines 2"),
        ("--num_proc 2", "unknown-option", "--num_proc"),
        ("--mixed_precision fp32", "bad-value", "--mixed_precision"),
        ("--config_file none.yaml", "accelerate-config-missing", "--config_file none.yaml"),
    ],
)  # fmt: skip
def test_what_accelerate_refuses(launch: Launch, options: str, kind: str, pointed: str) -> None:
    context = launch(f"accelerate launch {options} t.py")
    assert kinds(context) == [kind]
    assert refused(context)
    assert pointed_at(context, kind) == pointed
    assert isinstance(context.world_size, Unknown)


@pytest.mark.parametrize(
    ("text", "kind", "pointed"),
    [
        ("a: [1", "accelerate-config-syntax", ""),
        ("- a", "accelerate-config-syntax", "- a"),
        ("", "accelerate-config-syntax", ""),
        ("num_processes: 2\n", "accelerate-config-value", "num_processes: 2"),
        ("distributed_type: MULTIGPU\n", "accelerate-config-value", "MULTIGPU"),
        ("distributed_type: 'NO'\nnum_process: 2\n", "accelerate-config-key", "num_process"),
        ("distributed_type: MULTI_GPU\n", "num-processes-missing", "accelerate"),
    ],
)
def test_config_files_that_accelerate_refuses(
    launch: Launch, text: str, kind: str, pointed: str
) -> None:
    context = launch("accelerate launch --config_file a.yaml t.py", {"a.yaml": text})
    assert kinds(context) == [kind]
    assert refused(context)
    assert pointed_at(context, kind) == pointed


def test_no_distribution_means_one_process(launch: Launch) -> None:
    files = {"a.yaml": "distributed_type: 'NO'\nnum_processes: 4\n"}
    context = launch("accelerate launch --config_file a.yaml t.py", files)
    assert kinds(context) == ["processes-ignored"]
    assert value(context.world_size) == 1
    unquoted = {"a.yaml": "distributed_type: NO\nnum_processes: 4\n"}
    context = launch("accelerate launch --config_file a.yaml t.py", unquoted)
    assert kinds(context) == ["processes-ignored"]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("accelerate launch t.py", "accelerate counts the devices of the machine"),
        ("accelerate launch --num_processes $N t.py", "the shell variable N"),
        ("accelerate launch --config_file $CONFIG t.py", "the shell variable CONFIG"),
        ("accelerate launch --tpu --num_processes 8 t.py", "TPU"),
        ("accelerate launch --config_file s.yaml t.py", "SageMaker"),
        ("accelerate launch --config_file text.yaml t.py", "not an integer"),
        ("accelerate launch --config_file empty.yaml t.py", "num_processes is empty"),
    ],
)
def test_what_is_not_known(launch: Launch, command: str, reason: str) -> None:
    files = {
        "s.yaml": "compute_environment: AMAZON_SAGEMAKER\n",
        "text.yaml": "distributed_type: MULTI_GPU\nnum_processes: many\n",
        "empty.yaml": "distributed_type: MULTI_GPU\nnum_processes:\n",
    }
    context = launch(command, files)
    assert not refused(context)
    assert isinstance(context.world_size, Unknown)
    assert reason in context.world_size.reason


def test_without_the_yaml_extra_the_reason_says_what_to_install(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ruamel.yaml", None)
    context = launch("accelerate launch --config_file acc.yaml t.py", {"acc.yaml": YAML})
    assert kinds(context) == []
    assert isinstance(context.world_size, Unknown)
    assert "install dsguard[yaml]" in context.world_size.reason


def test_deepspeed_options_are_in_reach(launch: Launch) -> None:
    context = launch(
        "accelerate launch --use_deepspeed --deepspeed-config-file ds.json --num_processes 2 t.py"
    )
    argument = context.launcher_arguments.get("deepspeed_config_file")
    assert argument is not None
    assert (argument.flag, argument.value) == ("--deepspeed-config-file", "ds.json")
