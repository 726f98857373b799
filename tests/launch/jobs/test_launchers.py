"""The launchers of frameworks: what they start, and what they leave to the run."""

from __future__ import annotations

import sys

import pytest

from dsguard.launch.context import LauncherName
from dsguard.model.fact import OriginKind

from ..conftest import Launch
from ..facts import kinds, pointed_at, refused, source, value

pytest.importorskip("ruamel.yaml", reason="the yaml extra is not installed")

JOB = """\
base_model: some/model
model_name_or_path: some/model
model: some/model
datasets: []
deepspeed: ds.json
micro_batch_size: 2
"""
FILES = {"job.yaml": JOB}


@pytest.mark.parametrize(
    ("command", "launcher", "world_size"),
    [
        ("llamafactory-cli train job.yaml", "torchrun", 8),
        ("NPROC_PER_NODE=4 lmf train job.yaml", "torchrun", 4),
        ("FORCE_TORCHRUN=true NNODES=3 llamafactory-cli train job.yaml", "torchrun", 24),
        ("USE_MCA=1 llamafactory-cli train job.yaml", "torchrun", 8),
        ("srun -N 2 --ntasks-per-node 1 env FORCE_TORCHRUN=1 NNODES=2 lmf train job.yaml",
         "torchrun", 16),
        ("axolotl train job.yaml --launcher=torchrun --num-processes 3", "torchrun", 3),
        ("axolotl train job.yaml --accelerate --num-processes=3", "accelerate", 3),
        ("axolotl train job.yaml --no-accelerate", "python", 1),
        ("axolotl train job.yaml --launcher python", "python", 1),
        ("WORLD_SIZE=4 python -m axolotl.cli.train job.yaml", "python", 4),
        ("torchrun --nproc_per_node 2 -m axolotl.cli.train job.yaml", "torchrun", 2),
        ("NPROC_PER_NODE=gpu swift sft job.yaml", "torchrun", 8),
        ("NNODES=2 swift sft job.yaml", "torchrun", 2),
        ("swift sft job.yaml", "python", 1),
        ("trl sft --num_processes 2 --model_name_or_path x", "accelerate", 2),
        ("trl sft --accelerate-config=zero1 --model_name_or_path x", "accelerate", 8),
    ],
)  # fmt: skip
def test_what_is_started(launch: Launch, command: str, launcher: str, world_size: int) -> None:
    context = launch(command, FILES, devices_per_node=8)
    assert context.launcher.value == launcher
    assert value(context.world_size) == world_size
    assert context.module


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("llamafactory-cli train job.yaml", "as many as the machine has devices"),
        ("FORCE_TORCHRUN=$FORCE llamafactory-cli train job.yaml", "the shell variable FORCE"),
        ("USE_RAY=1 llamafactory-cli train job.yaml", "Ray"),
        ("llamafactory-cli webui", "only `llamafactory-cli train`"),
        ("FORCE_TORCHRUN=1 NPROC_PER_NODE=$N llamafactory-cli train j.yaml", "shell variable N"),
        ("axolotl train job.yaml --launcher ray", "with ray"),
        ("axolotl train job.yaml --sweep sweep.yaml", "a sweep"),
        ("axolotl preprocess job.yaml", "only `axolotl train`"),
        ("axolotl train job.yaml", "counts the devices"),
        ("swift export --model x", "starts no training"),
        ("swift build", "starts no training"),
        ("trl chat --model x", "starts no training"),
        ("trl sft --accelerate_config fsdp1", "fsdp1"),
    ],
)
def test_what_is_not_known(launch: Launch, command: str, reason: str) -> None:
    context = launch(command, FILES)
    assert reason in str(value(context.world_size))


def test_a_count_is_at_the_variable_that_gives_it(launch: Launch) -> None:
    context = launch("NPROC_PER_NODE=4 swift sft --model x")
    assert source(context.world_size) == "environment: NPROC_PER_NODE"
    text = "model: x\ntrain_type: full\nENV: {NPROC_PER_NODE: 2}\n"
    context = launch("swift sft env.yaml", {"env.yaml": text})
    assert source(context.world_size) == "jobfile: env.yaml:3:23"
    context = launch("NPROC_PER_NODE=4 swift sft env.yaml")
    assert source(context.world_size) == "environment: NPROC_PER_NODE"


def test_llamafactory_refuses_deepspeed_in_one_plain_process(launch: Launch) -> None:
    context = launch("llamafactory-cli train job.yaml", FILES, devices_per_node=1)
    assert context.launcher is LauncherName.PYTHON
    assert kinds(context) == ["deepspeed-without-launcher"]
    assert refused(context)
    assert pointed_at(context, "deepspeed-without-launcher") == "deepspeed: ds.json"
    forced = launch("FORCE_TORCHRUN=1 llamafactory-cli train job.yaml", devices_per_node=1)
    assert kinds(forced) == []


def test_words_that_only_the_shell_knows_leave_no_default(launch: Launch) -> None:
    command = "NPROC_PER_NODE=2 swift sft --model x --deepspeed zero2"
    known = launch(command).arguments.get("gradient_accumulation_steps")
    assert known is not None
    assert (known.value, known.kind, known.whose) == ("8", OriginKind.DEFAULT, "ms-swift")
    hidden = launch(f"{command} $ARGS").arguments.get("gradient_accumulation_steps")
    assert hidden is not None
    assert (hidden.value, hidden.known) == (None, False)


def test_without_the_yaml_extra_the_arguments_are_not_all_in_sight(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ruamel.yaml", None)
    for command in ("axolotl train job.yaml", "swift sft job.yaml", "trl sft --config job.yaml"):
        context = launch(command, FILES)
        assert "install dsguard[yaml]" in context.arguments.unread
        assert not context.arguments.complete
        assert kinds(context) == []


@pytest.mark.parametrize(
    ("command", "unread"),
    [
        ("axolotl train https://host/job.yaml", "does not fetch"),
        ("axolotl train folder", "is a folder"),
        ("axolotl train /nowhere/at/all/job.yaml", "is not on this machine"),
        ("axolotl train $JOB", "only the shell knows"),
    ],
)
def test_a_file_out_of_reach_is_no_trouble(
    launch: Launch, tmp_path_factory: pytest.TempPathFactory, command: str, unread: str
) -> None:
    context = launch(command, FILES)
    if "folder" in command:
        folder = tmp_path_factory.mktemp("run")
        (folder / "folder").mkdir()
        from dsguard.launch.context import Command
        from dsguard.launch.read import Surroundings, read_launch

        context = read_launch(Command.of_text(command), Surroundings(folder))
    assert kinds(context) == []
    assert unread in context.arguments.unread


def test_places_of_an_accelerate_block_are_in_the_yaml(launch: Launch) -> None:
    text = "distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n  zero_stage: 3\n"
    context = launch("accelerate launch --config_file a.yaml t.py", {"a.yaml": text})
    config = context.inline_config
    assert config is not None
    told = {
        pointer: config.source.slice(config.locate(pointer).span)
        for pointer in ("/zero_optimization/stage", "/train_batch_size", "/gradient_clipping")
    }
    assert told == {
        "/zero_optimization/stage": "3",
        "/train_batch_size": "deepspeed_config",
        "/gradient_clipping": "deepspeed_config",
    }
    key = config.locate("/zero_optimization/stage", "key")
    assert config.source.slice(key.span) == "zero_stage"


def test_a_typed_block_stands_in_the_command(launch: Launch) -> None:
    context = launch("accelerate launch --use_deepspeed --zero_stage 3 --num_processes 2 t.py")
    config = context.inline_config
    assert config is not None
    assert config.value["zero_optimization"]["stage"] == 3
    assert config.source.slice(config.locate("/zero_optimization/stage").span) == "3"
    unknown = launch("accelerate launch --use_deepspeed --zero_stage $S --num_processes 2 t.py")
    assert unknown.inline_config is None
    assert unknown.jobs[0].config is not None
    assert not unknown.jobs[0].config.argument.known
