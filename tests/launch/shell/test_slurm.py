"""``#SBATCH`` directives and the variables that come of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsguard.launch.context import LaunchContext
from dsguard.launch.read import Surroundings, read_launch
from dsguard.launch.shell.find import find_launches
from dsguard.launch.shell.slurm import directives, job_state
from dsguard.launch.shell.state import Array
from dsguard.launch.shell.text import text_of
from dsguard.model.source import Source
from tests.launch.facts import kinds, pointed_at, value


def variables(*options: str) -> dict[str, str]:
    """What Slurm is sure to set for a job with these directives."""
    text = "#!/bin/bash\n" + "".join(f"#SBATCH {option}\n" for option in options)
    state = job_state(directives(Source("job.sbatch", text)))
    found: dict[str, str] = {}
    for name, variable in state.variables.items():
        content = variable.content
        if content is not None and not isinstance(content, Array):
            found[name.removeprefix("SLURM_")] = text_of(content)
    return found


def launch(text: str, folder: Path) -> LaunchContext:
    (found,) = find_launches(Source("job.sbatch", "#!/bin/bash\n" + text)).launches
    return read_launch(found.command, Surroundings(folder))


def test_directives_stand_before_the_first_command() -> None:
    text = (
        "#!/bin/bash\n\n# a comment\n#SBATCH --nodes=2 --job-name 'a b'  # two\n##SBATCH -n 9\n"
        "# SBATCH -n 8\n#SBATCH -t1:00 --output=log#1.txt\nset -e\n#SBATCH --ntasks=7\n"
    )
    found = directives(Source("job.sbatch", text))
    assert [(a.name, a.value) for a in found] == [
        ("nodes", "2"),
        ("job_name", "a b"),
        ("time", "1:00"),
        ("output", "log#1.txt"),
    ]
    assert text[slice(*found[0].location.span)] == "--nodes=2"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--nodes=2"], {"NNODES": "2"}),
        (["-N2"], {"NNODES": "2"}),
        (["--nodes=2-2"], {"NNODES": "2"}),
        (["--nodes=2-4"], {}),
        (["--time=1:00"], {"NNODES": "1"}),
        (["--ntasks=1"], {"NNODES": "1", "NTASKS": "1"}),
        (["--ntasks=8"], {"NTASKS": "8"}),
        (["--ntasks=8", "--ntasks-per-node=4"], {"NTASKS": "8", "NTASKS_PER_NODE": "4"}),
        (["-N 2", "--ntasks-per-node=4"], {"NNODES": "2", "NTASKS": "8", "NTASKS_PER_NODE": "4"}),
        (["-N 2", "-n 6"], {"NNODES": "2", "NTASKS": "6"}),
        (["-N 1", "--gres=gpu:4"], {"NNODES": "1", "GPUS_ON_NODE": "4"}),
        (["-N 1", "--gres=gpu:a100:4"], {"NNODES": "1", "GPUS_ON_NODE": "4"}),
        (["-N 1", "--gres=gpu:a100:4,ssd:1"], {"NNODES": "1"}),
        (["-N 1", "--gres=ssd:4"], {"NNODES": "1"}),
        (["-N 1", "--gpus-per-node=8"],
         {"NNODES": "1", "GPUS_ON_NODE": "8", "GPUS_PER_NODE": "8"}),
        (["-N 1", "--gpus-per-node=h100:8"],
         {"NNODES": "1", "GPUS_ON_NODE": "8", "GPUS_PER_NODE": "h100:8"}),
        (["--gpus=16"], {"GPUS": "16"}),
        (["-w a,b"], {}),
        (["--nodes=$N"], {}),
        (["--nodes=2", "--nodes=3"], {"NNODES": "3"}),
        (["--cpus-per-task=8"], {"NNODES": "1", "CPUS_PER_TASK": "8"}),
    ],
)  # fmt: skip
def test_variables_of_a_job(options: list[str], expected: dict[str, str]) -> None:
    found = variables(*options)
    assert found.pop("JOB_NUM_NODES", None) == expected.get("NNODES")
    assert found.pop("NPROCS", None) == expected.get("NTASKS")
    assert found == expected


def test_without_directives_nothing_is_assumed(tmp_path: Path) -> None:
    assert variables() == {}
    plain = launch("torchrun --nnodes ${SLURM_NNODES:-1} --nproc_per_node 2 t.py\n", tmp_path)
    assert value(plain.world_size) == 2
    job = launch(
        "#SBATCH -n 4\ntorchrun --nnodes ${SLURM_NNODES:-1} --nproc_per_node 2 t.py\n", tmp_path
    )
    assert value(job.world_size) == "--nnodes depends on the shell variable SLURM_NNODES"


@pytest.mark.parametrize(
    ("options", "command", "nodes", "per_node"),
    [
        ("-N 2 --ntasks-per-node=4", "srun python t.py", 2, 4),
        ("-N 2 -n 8", "srun python t.py", 2, 4),
        ("-N 2", "srun python t.py", 2, 1),
        ("-N 2", "srun -c 4 python t.py", 2, None),
        ("-n 8", "srun python t.py", None, None),
        ("-N 2 --ntasks-per-node=4", "srun -n 2 python t.py", 2, 1),
        ("-N 2 --ntasks-per-node=4", "srun -n 1 python t.py", 2, None),
        ("-N 2 --ntasks-per-node=4", "srun -N 2 --ntasks-per-node=4 python t.py", 2, 4),
        ("-N 2 --ntasks-per-node=4", "srun --ntasks-per-node=1 python t.py", None, None),
        ("-N 2 --ntasks-per-node=4", "srun -N 1 python t.py", None, None),
        ("-N 2 --ntasks-per-node=4", "srun -N 1 -n 1 python t.py", 1, 1),
    ],
)
def test_srun_starts_the_tasks_of_its_job(
    options: str, command: str, nodes: int | None, per_node: int | None, tmp_path: Path
) -> None:
    context = launch(f"#SBATCH {options}\n{command}\n", tmp_path)
    for fact, expected in ((context.nodes, nodes), (context.processes_per_node, per_node)):
        found = value(fact)
        assert found == expected or (expected is None and isinstance(found, str)), found


def test_a_trouble_points_at_the_directive(tmp_path: Path) -> None:
    text = "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=8\nsrun deepspeed --num_gpus 8 t.py\n"
    context = launch(text, tmp_path)
    assert kinds(context) == ["launcher-in-every-task"]
    assert pointed_at(context, "launcher-in-every-task") in ("--ntasks-per-node=8", "--nodes=2")


def test_inside_srun_the_step_counts(tmp_path: Path) -> None:
    job = "#SBATCH -N 2\n#SBATCH -n 16\n"
    inner = "bash -c 'WORLD_SIZE=$SLURM_NTASKS python t.py --deepspeed x.json'\n"
    assert value(launch(f"{job}srun {inner}", tmp_path).world_size) == 16
    step = launch(f"{job}srun -N 2 -n 2 {inner}", tmp_path)
    assert isinstance(value(step.world_size), str)
