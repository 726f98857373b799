"""Which launcher, which script, which arguments: prefixes, shells and wrappers."""

from __future__ import annotations

import pytest

from dsguard.launch.context import LauncherName
from dsguard.model.fact import Unknown

from .conftest import Launch
from .facts import source, value

DEEPSPEED, TORCHRUN, PYTHON = LauncherName.DEEPSPEED, LauncherName.TORCHRUN, LauncherName.PYTHON
ACCELERATE, UNKNOWN = LauncherName.ACCELERATE, LauncherName.UNKNOWN
NO_LAUNCHER = "no launcher in the command"


@pytest.mark.parametrize(
    ("text", "launcher", "script", "world_size"),
    [
        ("train.py --lr 3", UNKNOWN, "train.py", NO_LAUNCHER),
        ("./train.py", UNKNOWN, "./train.py", NO_LAUNCHER),
        ("python train.py", PYTHON, "train.py", 1),
        ("python3.11 -u -X dev -W ignore train.py", PYTHON, "train.py", 1),
        ("/opt/env/bin/python -Wignore -OO train.py", PYTHON, "train.py", 1),
        ("python -m pkg.train --lr 3", PYTHON, "pkg.train", 1),
        ("python -um pkg.train", PYTHON, "pkg.train", 1),
        ("python -c 'import train'", PYTHON, None, 1),
        ("WORLD_SIZE=16 RANK=3 LOCAL_RANK=3 python train.py", PYTHON, "train.py", 16),
        ("deepspeed --num_gpus 2 train.py", DEEPSPEED, "train.py", 2),
        ("ds --num_gpus 2 train.py", DEEPSPEED, "train.py", 2),
        ("python -m deepspeed.launcher.runner --num_gpus 2 train.py", DEEPSPEED, "train.py", 2),
        ("python /opt/bin/deepspeed --num_gpus 2 train.py", DEEPSPEED, "train.py", 2),
        ("torchrun --nproc_per_node 2 train.py", TORCHRUN, "train.py", 2),
        ("python -m torch.distributed.run --nproc_per_node 2 train.py", TORCHRUN, "train.py", 2),
        ("python -m torch.distributed.launch --nproc_per_node 2 a.py", TORCHRUN, "a.py", 2),
        ("accelerate launch --num_processes 2 train.py", ACCELERATE, "train.py", 2),
        ("accelerate-launch --num_processes 2 train.py", ACCELERATE, "train.py", 2),
        ("python -m accelerate.commands.launch --num_processes 2 a.py", ACCELERATE, "a.py", 2),
        ("python -m accelerate.commands.accelerate_cli launch --num_processes 2 a.py",
         ACCELERATE, "a.py", 2),
        ("accelerate config", ACCELERATE, None, "only `accelerate launch` starts a script"),
        ("fancy sft --model m", UNKNOWN, "fancy",
         "dsguard does not know how fancy starts processes"),
        ("", UNKNOWN, None, "the launch command is empty"),
        ("A=1 B=2", UNKNOWN, None, "the launch command is empty"),
    ],
)  # fmt: skip
def test_launchers(
    launch: Launch, text: str, launcher: LauncherName, script: str | None, world_size: object
) -> None:
    context = launch(text)
    assert context.launcher is launcher
    assert (context.script.text if context.script else None) == script
    assert value(context.world_size) == world_size


@pytest.mark.parametrize(
    "prefix",
    [
        "A=1",
        "env",
        "env -u B A=1",
        "env --chdir /tmp -i A=1",
        "nohup",
        "time -p",
        "exec",
        "command",
        "numactl --cpunodebind=0 -m 0",
        "numactl -C 0-7 --interleave all",
        "nice -n 10",
        "nice",
        "ionice -c 2 -n 0",
        "taskset -c 0-3",
        "stdbuf -oL -e0",
        "timeout -k 5 3600s",
        "timeout --signal=TERM 1h",
        "setsid",
        "sudo -E",
        "sudo -u trainer A=1",
        "uv run",
        "uv run --with torch -p 3.11 --no-sync",
        "uv --project . run --",
        "poetry run",
        "poetry -C . run",
        "pixi run -e cuda",
        "conda run -n env --no-capture-output",
        "micromamba run -p /opt/env",
        "CUDA_DEVICE_ORDER=PCI_BUS_ID nohup env A=1 nice -n 5",
        "/usr/bin/env",
        "singularity exec --nv image.sif",
        "nsys profile -o report",
        "$PREFIX",
    ],
)
def test_prefixes_do_not_change_the_launch(launch: Launch, prefix: str) -> None:
    context = launch(f"{prefix} torchrun --nproc_per_node 4 train.py --lr 3 x")
    assert context.launcher is TORCHRUN
    assert value(context.world_size) == 4
    assert context.script is not None
    assert context.script.text == "train.py"
    assert [(a.flag, a.value) for a in context.arguments] == [("--lr", "3")]
    assert [word.text for word in context.arguments.positionals] == ["x"]


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("A=1 B=x=y A=2 python t.py", [("A", "1"), ("B", "x=y"), ("A", "2")]),
        ("A=1 env B=2 nohup env C=3 python t.py", [("A", "1"), ("B", "2"), ("C", "3")]),
        ("A=1 B=2 env -u A python t.py", [("B", "2")]),
        ("A=1 env -i B=2 python t.py", [("B", "2")]),
        ("bash -c 'export A=1; B=2; C=3 python t.py'", [("A", "1"), ("B", "2"), ("C", "3")]),
        ("python t.py A=1", []),
    ],
)
def test_variables_before_the_launcher(
    launch: Launch, text: str, variables: list[tuple[str, str]]
) -> None:
    context = launch(text)
    assert [(a.flag, a.value) for a in context.environment] == variables
    found = context.variable("A")
    wanted = [given for name, given in variables if name == "A"]
    assert (found.value if found else None) == (wanted[-1] if wanted else None)


@pytest.mark.parametrize(
    "text",
    [
        "bash -c 'torchrun --nproc_per_node 4 train.py'",
        'sh -c "cd /data && torchrun --nproc_per_node=4 train.py > log 2>&1"',
        "bash -euxo pipefail -c 'source env.sh; torchrun --nproc_per_node 4 train.py; echo done'",
        "bash -lc 'torchrun --nproc_per_node 4 train.py &'",
        "nohup bash -c \"sh -c 'torchrun --nproc_per_node 4 train.py'\"",
        "srun --ntasks-per-node=1 bash -c 'torchrun --nproc_per_node 4 train.py'",
    ],
)
def test_shell_texts(launch: Launch, text: str) -> None:
    context = launch(text)
    assert context.launcher is TORCHRUN
    assert value(context.world_size) == 4
    assert context.command.source.text == text
    place = context.launcher_location
    assert place.source.slice(place.span) == "torchrun"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("bash run.sh", "dsguard does not know how bash starts processes"),
        ("bash -c 'make train; make test'", "the text after bash -c is no command"),
        ("bash -c '\"'", "the text after bash -c is no command"),
        ("$LAUNCHER train.py", "the shell variable LAUNCHER"),
        ("$(which launcher) train.py", "the output of a command"),
        ("srun " * 40 + "python t.py", "too many commands start one another"),
    ],
)
def test_what_is_not_understood_is_unknown(launch: Launch, text: str, reason: str) -> None:
    context = launch(text)
    assert context.launcher is UNKNOWN
    assert isinstance(context.world_size, Unknown)
    assert reason in context.world_size.reason


@pytest.mark.parametrize(
    ("text", "launcher", "script"),
    [
        ("uv run train.py --lr 3", PYTHON, "train.py"),
        ("uv run --with x -m pkg.train --lr 3", PYTHON, "pkg.train"),
        ("uv run --module torch.distributed.run --nproc_per_node 2 train.py", TORCHRUN, "train.py"),
        ("uv sync train.py", UNKNOWN, "uv"),
        ("poetry run train.py --lr 3", UNKNOWN, "train.py"),
    ],
)
def test_uv_runs_files_and_modules(
    launch: Launch, text: str, launcher: LauncherName, script: str
) -> None:
    context = launch(text)
    assert context.launcher is launcher
    assert context.script is not None
    assert context.script.text == script


def test_a_module_is_told_from_a_script(launch: Launch) -> None:
    assert launch("python -m pkg.train").module
    assert launch("torchrun -m pkg.train").module
    assert launch("deepspeed --num_gpus 1 --module pkg.train").module
    assert launch("accelerate launch --num_processes 1 -m pkg.train").module
    assert not launch("python -m torch.distributed.run train.py").module


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("python train.py", "launch: python"),
        ("torchrun train.py", "default: default of torchrun"),
        ("torchrun --nproc-per-node=4 train.py", "launch: --nproc-per-node"),
        ("torchrun --nnodes 2 --nproc_per_node 8 train.py",
         "derived: 2 nodes × 8 processes per node = 16"),
        ("torchrun --nnodes 2 train.py", "derived: 2 nodes × 1 process per node = 2"),
        ("PET_NPROC_PER_NODE=4 torchrun train.py", "environment: PET_NPROC_PER_NODE"),
        ("WORLD_SIZE=2 python train.py", "environment: WORLD_SIZE"),
        ("deepspeed --num_accelerators 4 train.py", "launch: --num_accelerators"),
        ("CUDA_VISIBLE_DEVICES=0,1 deepspeed train.py", "environment: CUDA_VISIBLE_DEVICES"),
        ("mpirun -np 4 python train.py", "launch: -np"),
    ],
)  # fmt: skip
def test_origins_of_the_world_size(launch: Launch, text: str, origin: str) -> None:
    assert source(launch(text).world_size) == origin


def test_the_origin_points_into_the_command(launch: Launch) -> None:
    context = launch("torchrun --nnodes 2 --nproc_per_node 8 train.py")
    for fact, text in (
        (context.nodes, "--nnodes 2"),
        (context.processes_per_node, "--nproc_per_node 8"),
        (context.world_size, "--nproc_per_node 8"),
    ):
        place = fact.origin.location  # type: ignore[union-attr]
        assert place is not None
        assert place.source.slice(place.span) == text
