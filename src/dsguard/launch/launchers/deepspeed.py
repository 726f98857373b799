"""``deepspeed``: one process for each slot of each host.

Options as ``deepspeed/launcher/runner.py`` (``parse_args``) of 0.19.8 has them: unique prefixes
count, hyphens do not stand for underscores.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dsguard.launch.context import LaunchContext, LauncherName, LaunchTrouble
from dsguard.launch.counts import Counts
from dsguard.launch.env_file import env_file_troubles
from dsguard.launch.hostfile import (
    DEFAULT_HOSTFILE,
    Hostfile,
    HostfileElsewhereError,
    HostfileError,
    read_hostfile,
)
from dsguard.launch.options import OptionTable, flag, integer, text
from dsguard.launch.resources import Allocation, Request, allocate
from dsguard.launch.scan_argparse import scan_argparse
from dsguard.model.fact import Fact, Known, Unknown

if TYPE_CHECKING:
    from dsguard.launch.call import Call
    from dsguard.launch.scan import Scan

_LOG_LEVELS = ("debug", "info", "warning", "error", "critical")

OPTIONS = OptionTable(
    (
        flag("-h", "--help"),
        text("-H", "--hostfile"),
        text("-i", "--include"),
        text("-e", "--exclude"),
        integer("--num_nodes"),
        integer("--num_gpus", "--num_accelerators"),
        integer("--master_port"),
        text("--master_addr"),
        integer("--node_rank"),
        text("--launcher"),
        text("--launcher_args"),
        flag("--module"),
        flag("--no_python"),
        flag("--no_local_rank"),
        flag("--no_ssh"),
        flag("--no_ssh_check"),
        flag("--force_multi"),
        flag("--save_pid"),
        text("--enable_each_rank_log"),
        text("--autotuning", choices=("tune", "run")),
        flag("--bind_cores_to_rank"),
        text("--bind_core_list"),
        integer("--ssh_port"),
        text("--venv_script"),
        text("--log_level", choices=_LOG_LEVELS),
        flag("-q", "--quiet"),
        flag("--elastic_training", removed="0.19.8"),
        integer("--min_elastic_nodes", removed="0.19.8"),
        integer("--max_elastic_nodes", removed="0.19.8"),
    )
)


def read(call: Call) -> LaunchContext:
    """Read the words after ``deepspeed``."""
    scan = scan_argparse(call.command, call.words, OPTIONS.of_release(call.surroundings.deepspeed))
    counts, troubles = _allocate(call, scan)
    if scan.has("autotuning"):
        counts = Counts.unknown("the autotuner starts its own experiments on parts of the devices")
    if scan.has("elastic_training"):
        counts = Counts.unknown("elastic training takes as many nodes as have met")
    module = scan.has("module")
    no_python = scan.last("no_python")
    if module and no_python is not None:
        message = "--module and --no_python cannot be combined"
        trouble = LaunchTrouble("conflicting-options", message, no_python.location, True)
        troubles = (*troubles, trouble)
    if not module and no_python is None:
        troubles = (*troubles, *_hostfile_as_script(call, scan))
    several = isinstance(counts.nodes, Known) and counts.nodes.value > 1
    if several or scan.has("force_multi"):
        variable = call.variable("DS_ENV_FILE")
        here = call.surroundings
        troubles = (*troubles, *env_file_troubles(here.folder, here.environ.home, variable))
    return call.context(LauncherName.DEEPSPEED, scan, counts, module=module, troubles=troubles)


def _allocate(call: Call, scan: Scan) -> Allocation:
    backend = scan.text("launcher")
    if isinstance(backend, Unknown):
        return Allocation(Counts.unknown(backend.reason), ())
    named = scan.text("hostfile")
    if isinstance(named, Unknown) and call.surroundings.hostfile is None:
        return Allocation(Counts.unknown(named.reason), ())
    try:
        hostfile, troubles = find_hostfile(call, named if isinstance(named, Known) else None)
    except HostfileElsewhereError as error:
        unseen = Unknown(str(error))
        nodes, per_node = _asked(scan, "num_nodes") or unseen, _asked(scan, "num_gpus") or unseen
        return Allocation(Counts.of(nodes, per_node), (error.trouble,))
    except HostfileError as error:
        return Allocation(Counts.unknown(str(error)), (error.trouble,))
    counts, more = allocate(
        Request(
            location=call.location,
            hostfile=hostfile,
            include=scan.text("include"),
            exclude=scan.text("exclude"),
            num_nodes=scan.integer("num_nodes"),
            num_gpus=scan.integer("num_gpus"),
            node_rank=scan.integer("node_rank"),
            backend=backend.value.lower() if isinstance(backend, Known) else "pdsh",
            backend_location=backend.origin.location if isinstance(backend, Known) else None,
            no_ssh=scan.has("no_ssh"),
            force_multi=scan.has("force_multi"),
            visible=call.variable("CUDA_VISIBLE_DEVICES"),
            devices=call.surroundings.devices,
        )
    )
    return Allocation(counts, (*troubles, *more))


def find_hostfile(
    call: Call, named: Known | None
) -> tuple[Hostfile | None, tuple[LaunchTrouble, ...]]:
    """The hostfile that counts: dsguard's own, the one the launch names, or the default one.

    One that is named but missing only makes DeepSpeed warn and use this machine alone. Where the
    launch names an absolute path, the file may be on the machine that launches.

    Raises:
        HostfileError: DeepSpeed refuses the file.
        HostfileElsewhereError: the file may be on another machine.
    """
    surroundings = call.surroundings
    if surroundings.hostfile is not None:
        path, name, location = surroundings.hostfile, str(surroundings.hostfile), call.location
    elif named is not None:
        path, name = surroundings.folder / named.value, named.value
        location = named.origin.location or call.location
    else:
        return read_hostfile(Path(DEFAULT_HOSTFILE), DEFAULT_HOSTFILE), ()
    hostfile = read_hostfile(path, name)
    if hostfile is not None:
        return hostfile, ()
    if surroundings.hostfile is None and Path(name).is_absolute():
        message = (
            f"the hostfile {name!r} is not on this machine; where it is missing, deepspeed only "
            "warns and uses the devices of one machine"
        )
        trouble = LaunchTrouble("hostfile-elsewhere", message, location, False)
        raise HostfileElsewhereError(f"the hostfile {name!r} is not on this machine", trouble)
    message = f"there is no hostfile {name!r}: only the devices of this machine are used"
    return None, (LaunchTrouble("hostfile-missing", message, location, False),)


def _asked(scan: Scan, name: str) -> Fact | None:
    """A count that an option asks for; None where it asks for all there are."""
    fact = scan.integer(name)
    return None if isinstance(fact, Known) and fact.value <= 0 else fact


def _hostfile_as_script(call: Call, scan: Scan) -> tuple[LaunchTrouble, ...]:
    """A hostfile without its option is the first operand, so the script."""
    script = scan.script
    if script is None or not script.known or script.text.endswith(".py"):
        return ()
    try:
        hostfile = read_hostfile(call.surroundings.folder / script.text, script.text)
    except HostfileError:
        return ()
    if hostfile is None:
        return ()
    message = (
        f"{script.text} is a hostfile, but without --hostfile before it deepspeed takes it for "
        "the training script, and python stops at its first line"
    )
    at = call.command.locate(script)
    return (LaunchTrouble("hostfile-as-script", message, at, True),)
