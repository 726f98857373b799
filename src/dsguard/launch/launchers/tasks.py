"""What ``srun`` and ``mpirun`` have in common: they start a command as many tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from dsguard.launch.context import (
    LaunchContext,
    LauncherName,
    LaunchTrouble,
    ScriptArguments,
)
from dsguard.launch.counts import Counts
from dsguard.model.fact import Fact, Known

if TYPE_CHECKING:
    from dsguard.launch.call import Call
    from dsguard.launch.scan import Scan

_ONE_PROCESS = (LauncherName.PYTHON, LauncherName.UNKNOWN)


def start_tasks(
    call: Call, launcher: LauncherName, scan: Scan, tasks: Counts, world_size: Fact
) -> LaunchContext:
    """The launch of the command that the tasks run.

    A launcher in it counts its own processes. A Python script is one process of each task:
    ``world_size`` then says what the tasks know of each other, unless ``WORLD_SIZE`` is set.
    """
    if scan.script is None:
        counts = Counts.unknown(f"{call.program.text} is given no command")
        return call.context(launcher, scan, counts)
    inner = call.nested((scan.script, *scan.rest))
    if inner.launcher not in _ONE_PROCESS:
        return replace(inner, troubles=(*inner.troubles, *_many_launchers(call, tasks, inner)))
    python = inner.launcher is LauncherName.PYTHON
    if not python and not (inner.script is not None and inner.script.text.endswith(".py")):
        return inner
    return replace(
        inner,
        launcher=launcher,
        launcher_location=call.location,
        world_size=inner.world_size if inner.variable("WORLD_SIZE") else world_size,
        nodes=tasks.nodes,
        processes_per_node=tasks.processes_per_node,
        launcher_arguments=ScriptArguments(scan.arguments),
    )


def _many_launchers(call: Call, tasks: Counts, inner: LaunchContext) -> list[LaunchTrouble]:
    """A launcher starts the processes of its node: more than one task on a node is too many."""
    per_node = tasks.processes_per_node
    if not isinstance(per_node, Known) or per_node.value <= 1:
        return []
    if inner.launcher is LauncherName.TORCHRUN and _are_its_nodes(tasks, inner.nodes):
        return []
    message = (
        f"{call.program.text} starts {per_node.value} tasks on each node, "
        f"and every one of them starts {inner.launcher.value}"
    )
    location = per_node.origin.location or call.location
    return [LaunchTrouble("launcher-in-every-task", message, location, False)]


def _are_its_nodes(tasks: Counts, nodes: Fact) -> bool:
    """Whether torchrun is told to count every task as a node (``--nnodes``)."""
    if not isinstance(nodes, Known):
        return False
    total, per_node = tasks.world_size, tasks.processes_per_node
    if isinstance(total, Known):
        return bool(nodes.value == total.value)
    # How many machines there are is not known: a whole number of them is meant.
    return isinstance(per_node, Known) and nodes.value % per_node.value == 0
