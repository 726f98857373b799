"""What a launch gets from the shell that it is typed in."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from dsguard.launch.environ import read_environ
from dsguard.model.fact import Known, OriginKind, Unknown

from .conftest import Launch
from .facts import kinds, value


def test_only_what_launchers_read_is_taken_over() -> None:
    variables = {"HF_TOKEN": "secret", "WORLD_SIZE": "8", "PET_NNODES": "2", "XWORLD_SIZE": "9"}
    found = read_environ(variables, None).variables
    assert [(one.flag, one.value) for one in found] == [("PET_NNODES", "2"), ("WORLD_SIZE", "8")]
    assert {one.kind for one in found} == {OriginKind.ENVIRONMENT}
    assert found[0].location.source.slice(found[0].value_location.span) == "2"


def test_visible_devices_of_the_shell_are_counted(launch: Launch) -> None:
    environ = read_environ({"CUDA_VISIBLE_DEVICES": "2,5,7"}, None)
    world_size = launch("deepspeed train.py", environ=environ).world_size
    assert isinstance(world_size, Known)
    assert world_size.value == 3
    assert world_size.origin.kind is OriginKind.ENVIRONMENT
    assert world_size.origin.argument == "CUDA_VISIBLE_DEVICES"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python train.py", 8),
        ("WORLD_SIZE=4 python train.py", 4),
        ("env -u WORLD_SIZE python train.py", 1),
        ("env -i python train.py", 1),
        ("env -i bash -c 'WORLD_SIZE=2 python train.py'", 2),
    ],
)
def test_the_command_changes_what_the_shell_says(
    launch: Launch, command: str, expected: int
) -> None:
    environ = read_environ({"WORLD_SIZE": "8"}, None)
    assert value(launch(command, environ=environ).world_size) == expected


def test_srun_in_an_allocation_knows_its_tasks(launch: Launch) -> None:
    environ = read_environ({"SLURM_JOB_NUM_NODES": "2", "SLURM_NTASKS_PER_NODE": "1"}, None)
    read = launch("srun torchrun --nnodes 2 --nproc_per_node 4 train.py", environ=environ)
    assert value(read.world_size) == 8
    assert isinstance(launch("srun python train.py").nodes, Unknown)
    assert value(launch("srun python train.py", environ=environ).nodes) == 2


def test_the_file_of_variables_in_the_home_folder(launch: Launch, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".deepspeed_env").write_text("NCCL_DEBUG=INFO\nexport\n")
    hosts = {"hosts": "one slots=2\ntwo slots=2\n"}
    command = "deepspeed --hostfile hosts train.py"
    (trouble,) = launch(command, hosts, environ=read_environ({}, home)).troubles
    assert trouble.kind == "env-file-syntax"
    assert trouble.location.source.name == str(home / ".deepspeed_env")
    assert trouble.location.source.slice(trouble.location.span) == "export"
    assert kinds(launch(command, hosts)) == []


def test_no_home_and_no_cache() -> None:
    assert read_environ({}, None).accelerate_config is None
    assert read_environ({"HF_HOME": "~user/x"}, Path("/")).accelerate_config is None
    assert read_environ({"HF_HOME": "a\0b"}, None).accelerate_config is None


@pytest.fixture
def config_args() -> Iterator[ModuleType]:
    module = pytest.importorskip("accelerate.commands.config.config_args")
    yield module
    importlib.reload(module)


@pytest.mark.deepspeed
@pytest.mark.parametrize(
    ("variables", "cache"),
    [
        ({"HF_HOME": "{}/hf"}, "hf"),
        ({"HF_HOME": "~/hf"}, "hf"),
        ({"XDG_CACHE_HOME": "{}/xdg"}, "xdg/huggingface"),
        ({}, ".cache/huggingface"),
    ],
)
def test_the_default_config_is_where_accelerate_looks(
    config_args: ModuleType,
    variables: dict[str, str],
    cache: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {name: text.format(tmp_path) for name, text in variables.items()}
    for name in ("HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, text in {"HOME": str(tmp_path), **given}.items():
        monkeypatch.setenv(name, text)
    folder = tmp_path / cache / "accelerate"
    folder.mkdir(parents=True)
    assert read_environ(given, tmp_path).accelerate_config is None
    (folder / "default_config.yaml").write_text("num_processes: 3\n")
    importlib.reload(config_args)
    assert str(read_environ(given, tmp_path).accelerate_config) == config_args.default_config_file


@pytest.mark.deepspeed
def test_deepspeed_looks_for_variables_at_home_first(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = pytest.importorskip("deepspeed.launcher.runner")
    assert [str(Path.home()), "."] == runner.DEEPSPEED_ENVIRONMENT_PATHS
