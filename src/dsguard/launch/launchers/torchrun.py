"""``torchrun`` and its older names: the same number of processes on every node.

Options as ``torch/distributed/run.py`` (``get_args_parser``) of PyTorch 2.13 has them: hyphens
and underscores both work, which makes most prefixes ambiguous. ``PET_NAME=value`` variables
are the defaults of the options (``torch/distributed/argparse_util.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.context import Argument, LaunchContext, LauncherName, LaunchTrouble
from dsguard.launch.counts import Counts, default
from dsguard.launch.options import Option, OptionTable, both_spellings, flag, integer, number, text
from dsguard.launch.scan import Scan, sensible
from dsguard.launch.scan_argparse import scan_argparse
from dsguard.model.fact import Fact, Known, Unknown

if TYPE_CHECKING:
    from dsguard.launch.call import Call

_DEPRECATED = "torch.distributed.launch"
_NO_VARIABLE = ("help", "logs_specs", "numa_binding", "use_env")
_COUNTED = ("auto", "gpu", "xpu", "cpu")

_OPTIONS = (
    flag("-h", "--help"),
    text("--nnodes"),
    text("--nproc-per-node"),
    text("--rdzv-backend"),
    text("--rdzv-endpoint"),
    text("--rdzv-id"),
    text("--rdzv-conf"),
    flag("--standalone"),
    integer("--max-restarts"),
    number("--monitor-interval"),
    text("--start-method", choices=("spawn", "fork", "forkserver")),
    text("--event-log-handler"),
    text("--role"),
    flag("-m", "--module"),
    flag("--no-python"),
    flag("--run-path"),
    text("--log-dir"),
    text("-r", "--redirects"),
    text("-t", "--tee"),
    text("--local-ranks-filter"),
    text("--duplicate-stdout-filters"),
    text("--duplicate-stderr-filters"),
    integer("--node-rank"),
    text("--master-addr"),
    integer("--master-port"),
    text("--local-addr"),
    text("--logs-specs"),
    text("--numa-binding", choices=("node", "socket", "exclusive", "core-complex")),
    text("--signals-to-handle"),
    integer("--shutdown-timeout"),
    flag("--virtual-local-rank"),
)
OPTIONS = OptionTable(both_spellings(_OPTIONS))
DEPRECATED_OPTIONS = OptionTable((*OPTIONS.options, *both_spellings((flag("--use-env"),))))
"""The options of ``python -m torch.distributed.launch``."""


def read(call: Call) -> LaunchContext:
    """Read the words after ``torchrun``."""
    deprecated = call.program.text.endswith(_DEPRECATED)
    table = DEPRECATED_OPTIONS if deprecated else OPTIONS
    scan = scan_argparse(call.command, call.words, table)
    troubles: list[LaunchTrouble] = []
    scan = _with_variables(call, scan, table, troubles)
    counts = count(call, scan, troubles)
    module = scan.has("module")
    _check_combination(call, scan, deprecated, troubles)
    return call.context(LauncherName.TORCHRUN, scan, counts, module=module, troubles=troubles)


def count(call: Call, scan: Scan, troubles: list[LaunchTrouble]) -> Counts:
    """The processes by ``nnodes`` and ``nproc_per_node``; what torchrun refuses is a trouble."""
    return Counts.of(_nodes(scan, troubles), _processes(call, scan, troubles))


def _with_variables(
    call: Call, scan: Scan, table: OptionTable, troubles: list[LaunchTrouble]
) -> Scan:
    """The scan with ``PET_NAME=value`` words before the options, which win over them."""
    arguments = []
    for option in table.options:
        variable = call.variable(f"PET_{option.dest.upper()}")
        if variable is None or option.dest in _NO_VARIABLE:
            continue
        if _says_something(option, variable, scan, troubles):
            arguments.append(variable._replace(name=option.dest))
    return scan.after(arguments)


def _says_something(
    option: Option, variable: Argument, scan: Scan, troubles: list[LaunchTrouble]
) -> bool:
    if not variable.known:
        return True
    try:
        if option.convert is None:
            return bool(int(variable.value or ""))
        if not scan.has(option.dest):
            option.convert(variable.value or "")
    except ValueError:
        message = f"{variable.flag} cannot be {variable.value!r}"
        troubles.append(LaunchTrouble("bad-value", message, variable.value_location, True))
    return option.convert is not None


def _nodes(scan: Scan, troubles: list[LaunchTrouble]) -> Fact:
    """``--nnodes N`` or ``MIN:MAX``."""
    fact = scan.text("nnodes")
    if fact is None:
        return default(1, "torchrun")
    if not isinstance(fact, Known):
        return fact
    try:
        low, *high = (int(part) for part in fact.value.split(":"))
        if len(high) > 1 or not 0 < low <= (high or [low])[0]:
            raise ValueError
    except ValueError:
        message = f"{fact.origin.argument} is a number or MIN:MAX, not {fact.value!r}"
        return _refused(message, fact, troubles)
    if high and high[0] != low:
        return Unknown(f"the number of nodes, {low} to {high[0]}, is only known when they have met")
    return sensible(low, fact.origin)


def _processes(call: Call, scan: Scan, troubles: list[LaunchTrouble]) -> Fact:
    """``--nproc-per-node``: a number, or the kind of device to count."""
    fact = scan.text("nproc_per_node")
    if fact is None:
        return default(1, "torchrun")
    if not isinstance(fact, Known):
        return fact
    try:
        count = int(fact.value)
    except ValueError:
        return _devices(call, fact, troubles)
    if count <= 0:
        message = f"{fact.origin.argument} must be greater than 0, not {count}"
        return _refused(message, fact, troubles)
    return sensible(count, fact.origin)


def _devices(call: Call, fact: Known, troubles: list[LaunchTrouble]) -> Fact:
    devices = call.surroundings.devices
    if fact.value in _COUNTED and fact.value != "cpu" and devices is not None:
        return devices
    # Any other name may be that of an accelerator with its own PyTorch backend, such as npu.
    if fact.value in _COUNTED or fact.value.isidentifier():
        return Unknown(f"{fact.origin.argument} {fact.value} counts the devices of each node")
    message = f"{fact.origin.argument} is a number or a kind of device, not {fact.value!r}"
    return _refused(message, fact, troubles)


def _refused(message: str, fact: Known, troubles: list[LaunchTrouble]) -> Unknown:
    if fact.origin.location is not None:
        troubles.append(LaunchTrouble("bad-value", message, fact.origin.location, True))
    return Unknown(message)


def _check_combination(
    call: Call, scan: Scan, deprecated: bool, troubles: list[LaunchTrouble]
) -> None:
    no_python = scan.last("no_python")
    if no_python is None:
        return
    if scan.has("module") and not scan.has("run_path"):
        message = "--no-python and --module cannot be combined"
    elif deprecated and not scan.has("use_env"):
        message = "--no-python needs --use-env"
    else:
        return
    troubles.append(LaunchTrouble("conflicting-options", message, no_python.location, True))
