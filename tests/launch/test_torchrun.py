"""``torchrun``: nodes, processes of each node, and what it refuses."""

from __future__ import annotations

import pytest

from dsguard.model.fact import Unknown

from .conftest import Launch
from .facts import kinds, pointed_at, refused, value


@pytest.mark.parametrize(
    ("command", "nodes", "per_node", "world_size"),
    [
        ("torchrun t.py", 1, 1, 1),
        ("torchrun --nproc_per_node 4 t.py", 1, 4, 4),
        ("torchrun --nproc-per-node=4 t.py", 1, 4, 4),
        ("torchrun --standalone --nproc-per-node=4 t.py", 1, 4, 4),
        ("torchrun --nnodes 2 --nproc_per_node 8 --node_rank 0 t.py", 2, 8, 16),
        ("torchrun --nnodes 2:2 --nproc_per_node 8 t.py", 2, 8, 16),
        ("torchrun --nno 2 --stand --rol x t.py", 2, 1, 2),
        ("torchrun --nproc_per_node 1 --nproc-per-node 3 t.py", 1, 3, 3),
        ("PET_NPROC_PER_NODE=4 PET_NNODES=2 torchrun t.py", 2, 4, 8),
        ("PET_NPROC_PER_NODE=4 torchrun --nproc_per_node 2 t.py", 1, 2, 2),
        ("torchrun -r 3 -t3 --local-ranks-filter 0 --nproc_per_node 2 -m pkg", 1, 2, 2),
    ],
)
def test_processes(
    launch: Launch, command: str, nodes: int, per_node: int, world_size: int
) -> None:
    context = launch(command)
    assert kinds(context) == []
    assert value(context.nodes) == nodes
    assert value(context.processes_per_node) == per_node
    assert value(context.world_size) == world_size


@pytest.mark.parametrize("kind", ["gpu", "auto", "xpu"])
def test_devices_are_counted_by_the_machine_or_given(launch: Launch, kind: str) -> None:
    command = f"torchrun --nnodes 2 --nproc_per_node={kind} t.py"
    unknown = launch(command)
    assert value(unknown.nodes) == 2
    assert isinstance(unknown.world_size, Unknown)
    assert f"--nproc_per_node {kind} counts the devices" in unknown.world_size.reason
    known = launch(command, devices_per_node=8)
    assert value(known.world_size) == 16


@pytest.mark.parametrize("kind", ["cpu", "npu"])
def test_other_devices_are_not_ours_to_count(launch: Launch, kind: str) -> None:
    context = launch(f"torchrun --nproc_per_node={kind} t.py", devices_per_node=8)
    assert isinstance(context.world_size, Unknown)
    assert not refused(context)


def test_a_range_of_nodes_is_decided_at_rendezvous(launch: Launch) -> None:
    context = launch("torchrun --nnodes 1:4 --nproc_per_node 8 t.py")
    assert value(context.processes_per_node) == 8
    assert isinstance(context.world_size, Unknown)
    assert "1 to 4" in context.world_size.reason
    assert not refused(context)


@pytest.mark.parametrize(
    ("command", "kind", "pointed"),
    [
        ("torchrun --nproc 4 t.py", "ambiguous-option", "--nproc"),
        ("torchrun --nproc_per_node 0 t.py", "bad-value", "--nproc_per_node 0"),
        ("torchrun --nproc_per_node=2.5 t.py", "bad-value", "--nproc_per_node=2.5"),
        ("torchrun --nnodes 4:2 t.py", "bad-value", "--nnodes 4:2"),
        ("torchrun --nnodes 0 t.py", "bad-value", "--nnodes 0"),
        ("torchrun --nnodes 1:2:3 t.py", "bad-value", "--nnodes 1:2:3"),
        ("torchrun --nnodes two t.py", "bad-value", "--nnodes two"),
        ("torchrun --num_processes 2 t.py", "unknown-option", "--num_processes"),
        ("torchrun --use_env t.py", "unknown-option", "--use_env"),
        ("torchrun --no-python -m pkg", "conflicting-options", "--no-python"),
        ("python -m torch.distributed.launch --no_python t", "conflicting-options", "--no_python"),
        ("PET_NNODES=x torchrun t.py", "bad-value", "PET_NNODES=x"),
        ("PET_MAX_RESTARTS=x torchrun t.py", "bad-value", "x"),
        ("PET_STANDALONE=yes torchrun t.py", "bad-value", "yes"),
    ],
)
def test_what_torchrun_refuses(launch: Launch, command: str, kind: str, pointed: str) -> None:
    context = launch(command)
    assert kinds(context) == [kind]
    assert refused(context)
    assert pointed_at(context, kind) == pointed
    assert isinstance(context.world_size, Unknown)
    assert context.world_size.reason.startswith("torchrun stops: ")


def test_old_pythons_stop_at_ambiguous_script_arguments(launch: Launch) -> None:
    context = launch("torchrun t.py --lr 3 --log out --no")
    assert kinds(context) == ["ambiguous-script-argument"]
    assert not refused(context)
    assert pointed_at(context, "ambiguous-script-argument") == "--log"
    assert value(context.world_size) == 1
    assert kinds(launch("torchrun t.py --logging_dir out -- --log")) == []


def test_the_deprecated_launcher_knows_one_more_option(launch: Launch) -> None:
    context = launch("python -m torch.distributed.launch --use_env --nproc_per_node 2 t.py")
    assert kinds(context) == []
    assert context.launcher_arguments.get("use_env") is not None
    assert value(context.world_size) == 2
