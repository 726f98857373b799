"""How many processes take part, where the front end has a say in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dsguard.frontends.base import FrontEnd, FrontEndName
from dsguard.launch.context import LaunchContext, LauncherName
from dsguard.launch.counts import product
from dsguard.model.digits import whole_number
from dsguard.model.fact import Fact, Known, Unknown

if TYPE_CHECKING:
    from dsguard.frontends.requests import Request, Requests
    from dsguard.script.script import Script


def processes(
    launch: LaunchContext | None,
    front_end: FrontEnd | None,
    requests: Requests,
    script: Script | None,
) -> Fact:
    """All processes of the job.

    Lightning's Trainer starts one for each of its devices where nobody has started them, and
    counts Slurm's tasks itself: lightning/fabric/plugins/environments (``LightningEnvironment``,
    ``SLURMEnvironment``, ``TorchElasticEnvironment``). What plain python starts is one process
    only where the script starts no others.
    """
    lightning = front_end is not None and front_end.name is FrontEndName.LIGHTNING
    if lightning and (launch is None or _started_alone(launch)):
        return _of_trainer(requests)
    if launch is None:
        return Unknown("no launch command was given")
    read = launch.world_size
    if lightning and launch.launcher is LauncherName.SRUN and isinstance(read, Unknown):
        return product(launch.nodes, launch.processes_per_node)
    doubt = started_in_script(launch, script) or _doubt_of_one(launch, script)
    return Unknown(doubt) if doubt and isinstance(read, Known) else read


def started_in_script(launch: LaunchContext | None, script: Script | None) -> str:
    """What in the script may start ranks; empty where a launcher does, or nothing."""
    if launch is None or script is None or launch.launcher not in _NO_RANKS_OF_ITS_OWN:
        return ""
    return script.ranks.starts or ""


def _doubt_of_one(launch: LaunchContext, script: Script | None) -> str:
    """Why plain python may not be a job of one process."""
    alone = launch.launcher is LauncherName.PYTHON and launch.variable("WORLD_SIZE") is None
    if not alone or launch.jobs:  # a framework's own script is known
        return ""
    if launch.script is None or not launch.script.known:
        return "what python runs is not known"
    if script is None:
        return f"{launch.script.text} is not read, and may start processes of its own"
    if script.unreadable is not None:
        return f"{launch.script.text} cannot be read: {script.unreadable}"
    return script.ranks.counts or ""


_NO_RANKS_OF_ITS_OWN = (LauncherName.PYTHON, LauncherName.MPI, LauncherName.UNKNOWN)


def starts_ranks(launch: LaunchContext | None, script: Script | None) -> bool:
    """Whether the command may start ranks of its own, as all but most Python scripts do."""
    if started_in_script(launch, script):
        return True
    if launch is None or launch.launcher is LauncherName.PYTHON:
        return False
    alone = launch.launcher is LauncherName.UNKNOWN and launch.script is not None
    return launch.script is None or not alone or not launch.script.text.endswith(".py")


def _started_alone(launch: LaunchContext) -> bool:
    alone = launch.launcher in (LauncherName.PYTHON, LauncherName.UNKNOWN)
    return alone and launch.variable("WORLD_SIZE") is None


def _of_trainer(requests: Requests) -> Fact:
    """``Trainer(devices=…, num_nodes=…)``."""
    devices = requests.parameter("Trainer", "devices", "auto")
    nodes = requests.parameter("Trainer", "num_nodes", 1)
    if devices is None or nodes is None:
        return Unknown("the Lightning Trainer's devices and num_nodes decide")
    count = _count(devices.value)
    if count is None:
        return Unknown("the Lightning Trainer starts a process for each device that it finds")
    return product(_known(nodes, nodes.value), _known(devices, count))


def _known(request: Request, value: Any) -> Fact:
    number = whole_number(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        return Unknown(f"{request.flag} is {value!r}")
    return Known(number, request.origin)


def _count(devices: Any) -> int | None:
    """How many devices are meant by a number, a list of them, or either as text.

    None for all there are (``"auto"``, ``-1``), and for what Lightning does not take.
    """
    if isinstance(devices, str):
        text = devices.strip()
        number = whole_number(text)
        if number is not None:
            return number
        numbers = [part.strip() for part in text.split(",") if part.strip()]
        return len(numbers) if "," in text and all(n.isdecimal() for n in numbers) else None
    if isinstance(devices, (list, tuple)):
        return len(devices)
    if isinstance(devices, int) and not isinstance(devices, bool) and devices > 0:
        return devices
    return None
