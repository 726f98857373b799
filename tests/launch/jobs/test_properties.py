"""Laws of any job file: reading it ends, every place is real, nothing is executed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsguard.launch.context import Command, LaunchContext
from dsguard.launch.jobs.alone import read_job_file
from dsguard.launch.jobs.load import JobFileError
from dsguard.launch.read import Surroundings, read_launch
from dsguard.model.fact import Known, OriginKind, Unknown
from dsguard.model.source import Location, Source

pytest.importorskip("ruamel.yaml", reason="the yaml extra is not installed")

COMMANDS = (
    "axolotl train {}",
    "axolotl train {} --launcher torchrun --num-processes 2",
    "FORCE_TORCHRUN=1 llamafactory-cli train {} learning_rate=1e-5",
    "USE_V1=1 llamafactory-cli sft {}",
    "NPROC_PER_NODE=2 swift sft {}",
    "swift sft --config {}",
    "trl sft --config {} --accelerate_config {}",
    "accelerate launch --config_file {} train.py --deepspeed {}",
    "accelerate launch --config_file {} -m axolotl.cli.train {}",
    "torchrun train.py {}",
    "deepspeed train.py --config {}",
)
KEYS = (
    "distributed_type", "deepspeed_config", "compute_environment", "mixed_precision",
    "num_processes", "num_machines", "zero_stage", "gradient_clipping", "deepspeed_config_file",
    "base_model", "datasets", "micro_batch_size", "batch_size", "gradient_accumulation_steps",
    "deepspeed", "bf16", "fp16", "model_name_or_path", "stage", "finetuning_type", "dist_config",
    "name", "config_file", "global_batch_size", "model", "train_type", "ENV", "NPROC_PER_NODE",
    "NNODES", "dataset_train_split", "accelerate_config", "env", "learning_rate",
    "per_device_train_batch_size", "num_train_epochs", "offload_param_device", "fsdp_config",
)  # fmt: skip
WORDS = (
    "DEEPSPEED", "MULTI_GPU", "NO", "bf16", "zero2", "ds.json", "auto", "1", "0", "-1", "8", "2.5",
    "1e-5", "true", "no", "~", "''", "${X}", "{{ x }}", "full", "sft", "deepspeed", "[1, 2]", "{}",
    "{a: 1}", "0x" + "f" * 900, "9" * 999, ".nan", ".inf", "nvme", "'{\"a\": 1}'", "'{'", "*",
    "99999999999", "&x 1", "LOCAL_MACHINE", "AMAZON_SAGEMAKER", "gpu",
)  # fmt: skip
LINES = st.tuples(st.sampled_from(("", "", "  ")), st.sampled_from(KEYS), st.sampled_from(WORDS))
FILES = st.lists(LINES.map(lambda line: "{}{}: {}\n".format(*line)), max_size=10).map("".join)


def check(launch: LaunchContext) -> None:
    locations: list[Location] = [launch.launcher_location]
    arguments = [*launch.arguments, *launch.launcher_arguments]
    arguments += [job.config.argument for job in launch.jobs if job.config is not None]
    for argument in arguments:
        locations += [argument.location, argument.value_location]
        assert argument.origin().describe()
        assert argument.value is None or isinstance(argument.value, str)
        if argument.kind is OriginKind.DEFAULT:
            assert argument.whose
    for trouble in launch.troubles:
        locations.append(trouble.location)
        assert not trouble.message.endswith(".")
    for fact in (launch.world_size, launch.nodes, launch.processes_per_node):
        assert isinstance(fact, Known | Unknown)
        if isinstance(fact, Known) and fact.origin.location is not None:
            locations.append(fact.origin.location)
    if launch.inline_config is not None:
        for trail, _ in launch.inline_config.objects():
            locations.append(launch.inline_config.locate(trail.pointer))
    for location in locations:
        assert 0 <= location.span.start <= location.span.end <= len(location.source.text)


def check_everywhere(folder: Path, name: str) -> None:
    for command in COMMANDS:
        text = command.replace("{}", name)
        check(read_launch(Command.of_text(text), Surroundings(folder, devices_per_node=2)))


@settings(max_examples=300)
@given(FILES)
def test_any_keys_are_read(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("job")
    (folder / "job.yaml").write_text(text, encoding="utf-8")
    check_everywhere(folder, "job.yaml")
    try:
        launch = read_job_file(Source("job.yaml", text), Surroundings(folder))
    except JobFileError:
        return
    if launch is not None:
        check(launch)


@settings(max_examples=60)
@given(st.binary(max_size=60), st.sampled_from(("job.yaml", "job.json")))
def test_any_bytes_are_read(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str
) -> None:
    folder = tmp_path_factory.mktemp("job")
    (folder / name).write_bytes(data)
    check_everywhere(folder, name)


@pytest.mark.parametrize(
    "name",
    [".", "/", "nowhere.yaml", "/nowhere/job.yaml", "x" * 3000 + ".yaml", "https://host/job.yaml"],
)
def test_names_of_no_file(tmp_path: Path, name: str) -> None:
    check_everywhere(tmp_path, name)


def test_a_tag_in_a_job_file_runs_nothing(tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    text = f"base_model: !!python/object/apply:os.system ['touch {planted}']\ndatasets: []\n"
    (tmp_path / "job.yaml").write_text(text)
    check_everywhere(tmp_path, "job.yaml")
    assert not planted.exists()


def test_aliases_of_aliases_end(tmp_path: Path) -> None:
    levels = "".join(f"a{i}: &a{i} [{f'*a{i - 1},' * 9}]\n" for i in range(1, 20))
    (tmp_path / "job.yaml").write_text("base_model: x\na0: &a0 [x]\n" + levels)
    launch = read_launch(Command.of_text("axolotl train job.yaml"), Surroundings(tmp_path))
    assert [trouble.kind for trouble in launch.troubles] == ["job-file-syntax"]
