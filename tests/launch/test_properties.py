"""Laws of reading any launch: it ends, it says why it does not know, and its places are real."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsguard.launch.context import Argument, Command, LaunchContext
from dsguard.launch.launchers import deepspeed, torchrun
from dsguard.launch.launchers.accelerate_options import OPTIONS as ACCELERATE_OPTIONS
from dsguard.launch.read import Surroundings, read_launch
from dsguard.model.fact import Known, Unknown
from dsguard.model.source import Location

LAUNCHERS = (
    "deepspeed", "torchrun", "accelerate", "launch", "python", "python3.12", "srun", "mpirun",
    "env", "nohup", "uv", "run", "bash", "sh", "-c", "-m", "timeout", "sudo", "conda", "numactl",
    "torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch",
)  # fmt: skip
OPTIONS = [
    name
    for table in (deepspeed.OPTIONS, torchrun.DEPRECATED_OPTIONS, ACCELERATE_OPTIONS)
    for name in table.by_name
]
VALUES = (
    "2", "-1", "0", "1:4", "gpu", "x.py", "train.py", "", "--", "-", "$N", "a b", "h0@h1:0",
    "hosts", "acc.yaml", "CUDA_VISIBLE_DEVICES=0,1", "PET_NNODES=2", "WORLD_SIZE=4",
    "torchrun $A t.py", "deepspeed --num_gpus 2 t.py && echo", "'", "9" * 30, "9" * 5000,
    "\x00", "/", ":", "lr=3",
)  # fmt: skip
WORDS = st.lists(
    st.one_of(
        st.sampled_from(LAUNCHERS),
        st.sampled_from(OPTIONS),
        st.sampled_from(VALUES),
        st.tuples(st.sampled_from(OPTIONS), st.sampled_from(VALUES)).map("=".join),
        st.text(max_size=6),
    ),
    max_size=12,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("launch")
    (folder / "hosts").write_text("h0 slots=4\nh1 slots=4\n")
    (folder / "acc.yaml").write_text("distributed_type: DEEPSPEED\nnum_processes: 4\n")
    return folder


def check_places(context: LaunchContext) -> None:
    source = context.command.source
    arguments: list[Argument] = [
        *context.environment, *context.arguments, *context.launcher_arguments,
    ]  # fmt: skip
    locations: list[Location] = [context.launcher_location]
    locations += [place for a in arguments for place in (a.location, a.value_location)]
    locations += [trouble.location for trouble in context.troubles]
    for fact in (context.world_size, context.nodes, context.processes_per_node):
        assert isinstance(fact, Known | Unknown)
        if isinstance(fact, Unknown):
            assert fact.reason
            assert not fact.reason.endswith(".")
        elif fact.origin.location is not None:
            locations.append(fact.origin.location)
            assert fact.origin.describe()
    for location in locations:
        assert 0 <= location.span.start <= location.span.end <= len(location.source.text)
    for word in [context.script, *context.arguments.positionals]:
        if word is not None:
            assert 0 <= word.span.start <= word.span.end <= len(source.text)


@settings(max_examples=600,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(WORDS)
def test_any_argument_list_is_read(folder: Path, words: list[str]) -> None:
    command = Command.of_words(words)
    context = read_launch(command, Surroundings(folder))
    check_places(context)
    for word, text in zip(command.words, words, strict=True):
        assert shlex.split(command.source.slice(word.span)) == [text]
    inside = any(word in ("bash", "sh") for word in words)
    if context.script is not None and not inside:
        assert context.script.text in words or context.script.text in "".join(words)


@settings(max_examples=300,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(st.sampled_from(["deepspeed", "torchrun", "accelerate launch", "srun torchrun"]), WORDS)
def test_any_options_of_a_launcher_are_read(folder: Path, launcher: str, words: list[str]) -> None:
    command = Command.of_words([*launcher.split(), *words])
    check_places(read_launch(command, Surroundings(folder, devices_per_node=4)))


@settings(max_examples=200)
@given(st.binary(max_size=60))
def test_any_bytes_as_hostfile_or_config_file(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    (folder / "file").write_bytes(data)
    for text in ("deepspeed --hostfile file t.py", "accelerate launch --config_file file t.py"):
        check_places(read_launch(Command.of_text(text), Surroundings(folder)))


@pytest.mark.parametrize("name", [".", "", "no/such", "a\x00b", "x" * 5000])
def test_names_that_are_no_file(folder: Path, name: str) -> None:
    for option in (["deepspeed", "--hostfile"], ["accelerate", "launch", "--config_file"]):
        command = Command.of_words([*option, name, "t.py"])
        check_places(read_launch(command, Surroundings(folder)))
