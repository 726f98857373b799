"""srun and mpirun."""

from __future__ import annotations

import pytest

from dsguard.launch.context import LauncherName
from dsguard.model.fact import Candidate, Unknown

from .conftest import Launch
from .facts import kinds, pointed_at, value


@pytest.mark.parametrize(
    ("text", "nodes", "per_node", "tasks"),
    [
        ("srun -n 16 python t.py", None, None, 16),
        ("srun -n16 -N2 python t.py", 2, 8, 16),
        ("srun --nodes=2 --ntasks-per-node=8 --gres=gpu:8 python t.py", 2, 8, 16),
        ("srun -N 2 --ntasks 16 --ntasks-per-node 8 python t.py", 2, 8, 16),
        ("srun --nodes 2 --ntasks-per-no=8 --gpus-per-node 8 python t.py", 2, 8, 16),
        ("srun -N 2 python t.py", 2, None, None),
        ("srun -N 2-4 --ntasks-per-node=8 python t.py", None, 8, None),
        ("srun --label -K1 --pty --export=ALL -n 4 python t.py", None, None, 4),
        ("srun --future-option=1 -n 4 python t.py", None, None, None),
        ("srun -n $N python t.py", None, None, None),
    ],
)
def test_srun_tasks_are_not_the_world_size(
    launch: Launch, text: str, nodes: int | None, per_node: int | None, tasks: int | None
) -> None:
    context = launch(text)
    assert context.launcher is LauncherName.SRUN
    assert context.script is not None
    assert context.script.text == "t.py"
    for fact, expected in ((context.nodes, nodes), (context.processes_per_node, per_node)):
        assert value(fact) == expected or (expected is None and isinstance(fact, Unknown))
    assert isinstance(context.world_size, Unknown)
    candidates = [candidate.value for candidate in context.world_size.ignored]
    assert candidates == ([] if tasks is None else [tasks])


def test_srun_says_why(launch: Launch) -> None:
    context = launch("srun -n 4 python t.py")
    assert isinstance(context.world_size, Unknown)
    assert "srun starts 4 tasks" in context.world_size.reason
    (candidate,) = context.world_size.ignored
    assert isinstance(candidate, Candidate)
    assert candidate.origin.argument == "-n"


def test_variables_exported_by_hand_count_under_srun(launch: Launch) -> None:
    assert value(launch("WORLD_SIZE=8 srun -n 8 python t.py").world_size) == 8


@pytest.mark.parametrize(
    ("text", "nodes", "per_node", "world_size"),
    [
        ("mpirun -np 4 python t.py", None, None, 4),
        ("mpiexec -n 4 --oversubscribe -x PATH --mca btl ^openib python t.py", None, None, 4),
        ("mpirun -np 16 -npernode 8 -H a:8,b:8 python t.py", 2, 8, 16),
        ("mpirun -n 16 -ppn 8 -genv A 1 -genvall python -m pkg", 2, 8, 16),
        ("mpirun -N 8 python t.py", None, 8, None),
        ("mpirun -np 5 -N 2 python t.py", None, 2, 5),
        ("mpirun -np 2 python a.py : -np 2 python b.py", None, None, None),
        ("mpirun --hostfile h python t.py", None, None, None),
        ("mpirun -np 4 train.py", None, None, 4),
        ("mpirun --brand-new -np 4 python t.py", None, None, None),
    ],
)
def test_mpirun_ranks(
    launch: Launch, text: str, nodes: int | None, per_node: int | None, world_size: int | None
) -> None:
    context = launch(text)
    assert context.launcher is LauncherName.MPI
    for fact, expected in (
        (context.nodes, nodes),
        (context.processes_per_node, per_node),
        (context.world_size, world_size),
    ):
        assert value(fact) == expected or (expected is None and isinstance(fact, Unknown))


@pytest.mark.parametrize(
    "tasks", ["srun --ntasks-per-node=8", "srun -N2 -n16", "mpirun -np 8 -N 8"]
)
def test_a_launcher_in_every_task_is_too_many(launch: Launch, tasks: str) -> None:
    context = launch(f"{tasks} torchrun --nproc_per_node 8 t.py")
    assert kinds(context) == ["launcher-in-every-task"]
    assert pointed_at(context, "launcher-in-every-task") in tasks


@pytest.mark.parametrize(
    "tasks", ["srun", "srun --ntasks-per-node=1", "srun -N 2 -n 2", "mpirun -np 2 -N 1"]
)
def test_a_launcher_in_one_task_of_a_node_counts_itself(launch: Launch, tasks: str) -> None:
    context = launch(f"{tasks} torchrun --nnodes 2 --nproc_per_node 8 t.py")
    assert context.launcher is LauncherName.TORCHRUN
    assert value(context.world_size) == 16
    assert kinds(context) == []


@pytest.mark.parametrize("tasks", ["srun --ntasks-per-node=4", "srun -N2 -n8", "mpirun -np 8 -N 4"])
def test_torchrun_may_count_every_task_as_a_node(launch: Launch, tasks: str) -> None:
    context = launch(f"{tasks} torchrun --nnodes 8 --nproc_per_node 1 t.py")
    assert kinds(context) == []
    assert value(context.world_size) == 8


def test_a_shell_script_in_tasks_is_unknown(launch: Launch) -> None:
    context = launch("mpirun -np 4 bash run.sh")
    assert isinstance(context.world_size, Unknown)
    assert isinstance(launch("srun").world_size, Unknown)
