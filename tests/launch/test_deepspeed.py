"""``deepspeed``: hosts, slots and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version

from dsguard.launch.context import Command
from dsguard.launch.hostfile import HostfileError, parse_hostfile
from dsguard.launch.read import Surroundings, read_launch
from dsguard.model.fact import Unknown
from dsguard.model.source import Source

from .conftest import Launch
from .facts import kinds, pointed_at, refused, source, value

HOSTS = {"hosts": "# two nodes\nh0 slots=4\n\nh1 slots=4  # trailing text\n"}
UNEVEN = {"hosts": "h0 slots=4\nh1 slots=2\n"}


@pytest.mark.parametrize(
    ("options", "nodes", "per_node", "world_size"),
    [
        ("", 2, 4, 8),
        ("--num_gpus 2", 2, 2, 4),
        ("--num_gpu 2", 2, 2, 4),
        ("--num_accelerators=3", 2, 3, 6),
        ("--num_gpus 2 --num_gpus 3", 2, 3, 6),
        ("--num_gpus 0", 2, 4, 8),
        ("--num_gpus -1", 2, 4, 8),
        ("--num_nodes 1", 1, 4, 4),
        ("--num_nodes 1 --num_gpus 2", 1, 2, 2),
        ("--include h1", 1, 4, 4),
        ("--include h1:0,2", 1, 2, 2),
        ("-i h0@h1:1", 2, None, 5),
        ("--include h0:0,0,1@h0:1,2", 1, 3, 3),
        ("--exclude h0", 1, 4, 4),
        ("-e h0:3@h1:0", 2, 3, 6),
        ("--exclude h0:0", 2, None, 7),
        ("--launcher slurm --exclude h0:3@h1:3", 2, 3, 6),
        ("--launcher OpenMPI", 2, 4, 8),
        ("--no_ssh --node_rank 1", 2, 4, 8),
    ],
)
def test_processes_with_a_hostfile(
    launch: Launch, options: str, nodes: int, per_node: int | None, world_size: int
) -> None:
    context = launch(f"deepspeed --hostfile hosts {options} train.py", HOSTS)
    assert kinds(context) == []
    assert (value(context.nodes), value(context.world_size)) == (nodes, world_size)
    assert value(context.processes_per_node) == per_node or (
        per_node is None and isinstance(context.processes_per_node, Unknown)
    )


@pytest.mark.parametrize(
    ("options", "devices", "world_size"),
    [
        ("--num_gpus 4", None, 4),
        ("--num_gpus 4 --num_nodes 1", None, 4),
        ("--include localhost:0,3", None, 2),
        ("", 8, 8),
        ("--include localhost", 8, 8),
        ("--exclude localhost:0", 8, 7),
    ],
)
def test_processes_on_this_machine(
    launch: Launch, options: str, devices: int | None, world_size: int
) -> None:
    context = launch(f"deepspeed {options} train.py", devices_per_node=devices)
    assert kinds(context) == []
    assert value(context.nodes) == 1
    assert value(context.world_size) == value(context.processes_per_node) == world_size


@pytest.mark.parametrize("options", ["", "--include localhost", "--exclude localhost:0"])
def test_devices_that_nobody_counted_are_unknown(launch: Launch, options: str) -> None:
    context = launch(f"deepspeed {options} train.py")
    assert kinds(context) == []
    assert isinstance(context.world_size, Unknown)
    assert "one process for each device" in context.world_size.reason


@pytest.mark.parametrize(
    ("options", "kind", "pointed"),
    [
        ("--include h2", "unknown-host", "--include h2"),
        ("--exclude h2:0", "unknown-host", "--exclude h2:0"),
        ("--include h0:2,4", "unknown-slot", "--include h0:2,4"),
        ("--include h0:-1", "unknown-slot", "--include h0:-1"),
        ("--include h0:0-2", "filter-syntax", "--include h0:0-2"),
        ("--include h0:", "filter-syntax", "--include h0:"),
        ("--include h0:0:1", "filter-syntax", "--include h0:0:1"),
        ("--include h0 --exclude h1", "include-and-exclude", "--exclude h1"),
        ("--include h0 --num_gpus 2", "filter-with-counts", "--num_gpus 2"),
        ("--num_nodes 0 --exclude h0", "filter-with-counts", "--num_nodes 0"),
        ("--exclude h0@h1", "nothing-selected", "--exclude h0@h1"),
        ("--launcher nosuch", "unknown-backend", "--launcher nosuch"),
        ("--launcher mpich --num_gpus 2", "backend-refuses-filter", "--launcher mpich"),
        ("--launcher slurm --include h0:1", "backend-refuses-filter", "--launcher slurm"),
        ("--launcher slurm --exclude h0:3", "backend-needs-equal-slots", "--launcher slurm"),
        ("--no_ssh", "node-rank-out-of-range", "deepspeed"),
        ("--no_ssh --node_rank 2", "node-rank-out-of-range", "--node_rank 2"),
        ("--module --no_python", "conflicting-options", "--no_python"),
        ("--elastic_training", "removed-option", "--elastic_training"),
        ("--max_elastic_nodes 4", "removed-option", "--max_elastic_nodes"),
    ],
)
def test_what_deepspeed_refuses(launch: Launch, options: str, kind: str, pointed: str) -> None:
    context = launch(f"deepspeed --hostfile hosts {options} train.py", HOSTS)
    assert kinds(context) == [kind]
    assert refused(context)
    assert pointed_at(context, kind) == pointed
    assert isinstance(context.world_size, Unknown)
    assert context.world_size.reason.startswith("deepspeed stops: ")


def test_nodes_without_a_hostfile_are_refused(launch: Launch) -> None:
    context = launch("deepspeed --num_nodes 2 --num_gpus 8 train.py")
    assert kinds(context) == ["num-nodes-without-hostfile"]
    assert pointed_at(context, "num-nodes-without-hostfile") == "--num_nodes 2"


def test_uneven_slots_are_refused_by_back_ends_that_need_equal_ones(launch: Launch) -> None:
    for backend in ("mpich", "impi", "mvapich", "slurm"):
        context = launch(f"deepspeed --hostfile hosts --launcher {backend} t.py", UNEVEN)
        assert kinds(context) == ["backend-needs-equal-slots"]
    assert value(launch("deepspeed --hostfile hosts --launcher openmpi t.py").world_size) == 6


@pytest.mark.parametrize(
    ("options", "kind", "pointed", "world_size"),
    [
        ("--num_gpus 8", "gpus-above-slots", "--num_gpus 8", 16),
        ("--num_nodes 3", "num-nodes-above-hosts", "--num_nodes 3", 8),
    ],
)
def test_what_deepspeed_lets_pass(
    launch: Launch, options: str, kind: str, pointed: str, world_size: int
) -> None:
    context = launch(f"deepspeed --hostfile hosts {options} train.py", HOSTS)
    assert kinds(context) == [kind]
    assert not refused(context)
    assert pointed_at(context, kind) == pointed
    assert value(context.world_size) == world_size


def test_more_processes_than_devices_given_by_option(launch: Launch) -> None:
    context = launch("deepspeed --num_gpus 8 train.py", devices_per_node=4)
    assert kinds(context) == ["gpus-above-slots"]
    assert value(context.world_size) == 8


def test_a_missing_hostfile_leaves_this_machine(launch: Launch) -> None:
    context = launch("deepspeed --hostfile job/hosts.txt train.py", devices_per_node=4)
    assert kinds(context) == ["hostfile-missing"]
    assert not refused(context)
    assert pointed_at(context, "hostfile-missing") == "--hostfile job/hosts.txt"
    assert value(context.world_size) == 4
    assert kinds(launch("deepspeed --num_gpus 1 train.py")) == []


def test_an_absolute_hostfile_may_be_on_the_machine_that_launches(launch: Launch) -> None:
    context = launch("deepspeed --hostfile /job/hosts.txt train.py", devices_per_node=4)
    assert kinds(context) == ["hostfile-elsewhere"]
    assert not refused(context)
    assert pointed_at(context, "hostfile-elsewhere") == "--hostfile /job/hosts.txt"
    assert value(context.world_size) == "the hostfile '/job/hosts.txt' is not on this machine"
    asked = launch("deepspeed --hostfile /job/hosts.txt --num_nodes 2 --num_gpus 8 train.py")
    assert kinds(asked) == ["hostfile-elsewhere"]
    assert value(asked.world_size) == 16
    everything = launch("deepspeed --hostfile /job/hosts.txt --num_nodes 2 --num_gpus -1 train.py")
    assert "not on this machine" in str(value(everything.world_size))


def test_a_forgotten_hostfile_option_makes_the_hostfile_the_script(launch: Launch) -> None:
    context = launch("deepspeed ./hosts train.py --deepspeed_config ds.json", HOSTS)
    assert context.script is not None
    assert context.script.text == "./hosts"
    assert [word.text for word in context.arguments.positionals] == ["train.py"]
    assert kinds(context) == ["hostfile-as-script"]
    assert refused(context)
    assert pointed_at(context, "hostfile-as-script") == "./hosts"


@pytest.mark.parametrize(
    "words", ["--module hosts", "--no_python ./hosts", "./other", "--hostfile hosts hosts.py", "$H"]
)
def test_other_scripts_are_no_hostfiles(launch: Launch, words: str) -> None:
    assert kinds(launch(f"deepspeed {words} train.py", HOSTS | {"other": "import torch"})) == []


def test_elastic_options_are_there_up_to_0_19_7(launch: Launch) -> None:
    words = "deepspeed --elastic_training --max_elastic_nodes 4 train.py"
    older = launch(words, deepspeed=Version("0.19.7"), devices_per_node=4)
    assert kinds(older) == []
    assert "elastic training" in str(value(older.world_size))
    assert refused(launch(words, deepspeed=Version("0.19.8")))
    assert refused(launch(words))


def test_our_own_hostfile_wins(launch: Launch, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("x slots=3\n")
    context = launch("deepspeed --hostfile hosts train.py", HOSTS, hostfile=own)
    assert value(context.world_size) == 3
    missing = launch("deepspeed --hostfile hosts train.py", hostfile=tmp_path / "none")
    assert kinds(missing) == ["hostfile-missing"]


def test_the_world_size_of_a_hostfile_points_into_it(launch: Launch) -> None:
    context = launch("deepspeed --hostfile hosts train.py", HOSTS)
    assert source(context.world_size) == "hostfile: hosts:2:1"
    assert source(context.nodes) == "hostfile: hosts:2:1"


@pytest.mark.parametrize(
    ("options", "world_size", "ignored"),
    [
        ("", 2, False),
        ("--num_nodes 0", None, False),
        ("--num_gpus 2", 2, True),
        ("--num_gpus 4", 4, True),
        ("--include localhost:0,1", 2, True),
        ("--include localhost:2,3", 2, False),
    ],
)
def test_visible_devices(
    launch: Launch, options: str, world_size: int | None, ignored: bool
) -> None:
    context = launch(f"CUDA_VISIBLE_DEVICES=2,3 deepspeed {options} train.py")
    assert ("visible-devices-ignored" in kinds(context)) is ignored
    if world_size is None:
        assert kinds(context) == ["filter-with-counts"]
    else:
        assert value(context.world_size) == world_size


def test_visible_devices_that_are_used_anyway_are_no_trouble(launch: Launch) -> None:
    assert kinds(launch("CUDA_VISIBLE_DEVICES=0,1 deepspeed --num_gpus 2 t.py")) == []
    files = {"hosts": "h0 slots=2\n"}
    assert kinds(launch("CUDA_VISIBLE_DEVICES=1,0 deepspeed -H hosts t.py", files)) == []
    context = launch("CUDA_VISIBLE_DEVICES=1 deepspeed -H hosts t.py")
    assert kinds(context) == ["visible-devices-ignored"]
    assert pointed_at(context, "visible-devices-ignored") == "CUDA_VISIBLE_DEVICES=1"


@pytest.mark.parametrize(
    ("value_", "kind"),
    [("GPU-8932f937", "filter-syntax"), ("0,8", "unknown-slot"), ("-1", "unknown-slot")],
)
def test_visible_devices_that_deepspeed_cannot_take(launch: Launch, value_: str, kind: str) -> None:
    context = launch(f"CUDA_VISIBLE_DEVICES={value_} deepspeed t.py", devices_per_node=8)
    assert kinds(context) == [kind]
    assert refused(context)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("CUDA_VISIBLE_DEVICES=$GPUS deepspeed t.py", "the shell variable GPUS"),
        ("deepspeed --hostfile $HOSTFILE t.py", "the shell variable HOSTFILE"),
        ("deepspeed --include $WHERE t.py", "the shell variable WHERE"),
        ("deepspeed --launcher $HOW t.py", "the shell variable HOW"),
        ("deepspeed --autotuning tune --num_gpus 2 t.py", "the autotuner"),
    ],
)
def test_what_is_not_known_before_launch(launch: Launch, command: str, reason: str) -> None:
    context = launch(command)
    assert isinstance(context.world_size, Unknown)
    assert reason in context.world_size.reason
    assert context.script is not None


def test_one_unknown_factor_leaves_the_other_known(launch: Launch) -> None:
    context = launch("deepspeed --hostfile hosts --num_gpus $N t.py", HOSTS)
    assert value(context.nodes) == 2
    assert isinstance(context.processes_per_node, Unknown)
    context = launch("deepspeed --hostfile hosts --num_nodes $N t.py", HOSTS)
    assert value(context.processes_per_node) == 4
    assert isinstance(context.nodes, Unknown)
    assert isinstance(context.world_size, Unknown)


def test_options_are_named_as_the_parser_stores_them(launch: Launch) -> None:
    context = launch("deepspeed -H hosts --num_accelerators 2 --master_p 1 t.py", HOSTS)
    assert [(a.name, a.flag, a.value) for a in context.launcher_arguments] == [
        ("hostfile", "-H", "hosts"),
        ("num_gpus", "--num_accelerators", "2"),
        ("master_port", "--master_p", "1"),
    ]


@pytest.mark.parametrize(
    ("text", "kind", "place"),
    [
        ("h0\n", "hostfile-syntax", "h0"),
        ("h0 slots=4\n  h1:4\n", "hostfile-syntax", "h1:4"),
        ("h0 slots = 4", "hostfile-syntax", "h0 slots = 4"),
        ("h0 slots=x", "hostfile-syntax", "h0 slots=x"),
        ("h0 slots=99999999999", "hostfile-syntax", "h0 slots=99999999999"),
        ("h0 slots=4\r\nh0 slots=2\r\n", "duplicate-host", "h0 slots=2"),
        ("", "empty-hostfile", ""),
        ("# h0 slots=4\n\n", "empty-hostfile", ""),
    ],
)
def test_hostfiles_that_deepspeed_refuses(text: str, kind: str, place: str) -> None:
    with pytest.raises(HostfileError) as error:
        parse_hostfile(Source("hosts", text))
    trouble = error.value.trouble
    assert (trouble.kind, trouble.refused) == (kind, True)
    assert trouble.location.source.slice(trouble.location.span) == place


def test_a_refused_hostfile_is_a_trouble_of_the_launch(launch: Launch, tmp_path: Path) -> None:
    context = launch("deepspeed --hostfile hosts t.py", {"hosts": "h0 slots=4\nh1 slot=4\n"})
    (trouble,) = context.troubles
    assert trouble.kind == "hostfile-syntax"
    assert trouble.location.source.name == "hosts"
    assert trouble.location.source.position(trouble.location.span.start) == (2, 1)
    (tmp_path / "bytes").write_bytes(b"h0 slots=4\n\xff\n")
    assert kinds(launch("deepspeed --hostfile bytes t.py")) == ["hostfile-syntax"]


@pytest.mark.parametrize(
    ("text", "options", "refused"),
    [
        ("A=1\nB=x=y\n", "", False),
        ("A=1\n\nB=2\n", "", True),
        ("# remark\n", "", True),
        ("A=1", "", False),
        ("# remark\n", "--num_nodes 1 ", False),
        ("# remark\n", "--num_nodes 1 --force_multi ", True),
    ],
)
def test_the_file_of_variables(text: str, options: str, refused: bool, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("h0 slots=2\nh1 slots=2\n")
    (tmp_path / "my.env").write_text(text)
    words = Command.of_text(f"DS_ENV_FILE=my.env deepspeed --hostfile hosts {options}train.py")
    launch = read_launch(words, Surroundings(tmp_path))
    assert ("env-file-syntax" in [trouble.kind for trouble in launch.troubles]) is refused
