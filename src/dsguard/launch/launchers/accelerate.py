"""``accelerate launch``: a total of processes, divided among machines.

A typed option wins over Accelerate's own YAML, which wins over the default. Source:
``accelerate/commands/launch.py`` (``_validate_launch_command``, ``launch_command``) and
``accelerate/utils/launch.py`` (``prepare_*``) of 1.15.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from dsguard.launch.accelerate_config import (
    AccelerateConfigError,
    check_accelerate_config,
    config_options,
    precision_trouble,
    read_accelerate_config,
)
from dsguard.launch.call import Call, Surroundings
from dsguard.launch.context import (
    Argument,
    Command,
    LaunchContext,
    LauncherName,
    LaunchTrouble,
    ScriptArguments,
    TroubleKind,
    Word,
)
from dsguard.launch.counts import Counts, default
from dsguard.launch.hostfile import HostfileElsewhereError, HostfileError
from dsguard.launch.launchers.accelerate_options import OPTIONS
from dsguard.launch.launchers.deepspeed import find_hostfile
from dsguard.launch.resources import Request, allocate
from dsguard.launch.scan import Scan, sensible
from dsguard.launch.scan_argparse import scan_argparse
from dsguard.model.fact import Fact, Known, Origin, OriginKind, Unknown
from dsguard.model.tree import Document, Object
from dsguard.reading.errors import YamlUnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dsguard.model.source import Location

_WITH_SUBCOMMANDS = ("accelerate", "accelerate.commands.accelerate_cli")
_PARADIGMS = ("multi_gpu", "tpu", "tpu_use_cluster", "use_deepspeed", "use_fsdp", "use_megatron_lm")
_EXCLUSIVE = ("multi_gpu", "cpu", "tpu", "use_deepspeed", "use_fsdp")

_ONLY_DEEPSPEED = frozenset(
    [
        "deepspeed_config_file",
        "deepspeed_hostfile",
        "deepspeed_exclusion_filter",
        "deepspeed_inclusion_filter",
        "deepspeed_multinode_launcher",
        "deepspeed_moe_layer_cls_names",
        "zero_stage",
        "offload_optimizer_device",
        "offload_param_device",
        "offload_optimizer_nvme_path",
        "offload_param_nvme_path",
        "zero3_init_flag",
        "zero3_save_16bit_model",
        "gradient_clipping",
    ]
)
"""Options that only a launch with DeepSpeed passes on."""


class _Way(Enum):
    """How the processes are started."""

    DEEPSPEED = "deepspeed"
    TORCHRUN = "torchrun"
    TPU = "tpu"
    SAGEMAKER = "sagemaker"
    SIMPLE = "simple"
    GUESSED = "guessed"
    """More than one process, if the machine has more than one device."""


_WAYS = {
    "DEEPSPEED": _Way.DEEPSPEED,
    "XLA": _Way.TPU,
    "NO": _Way.SIMPLE,
    "MULTI_CPU": _Way.SIMPLE,
    "TP": _Way.SIMPLE,
}
"""By ``distributed_type``; every other type starts its processes as torchrun does."""


def read(call: Call) -> LaunchContext:
    """Read the words after ``accelerate`` or ``accelerate-launch``."""
    words = call.words
    if call.program.text.endswith(_WITH_SUBCOMMANDS):
        if not words or words[0].text != "launch":
            reason = "only `accelerate launch` starts a script"
            return call.context(LauncherName.ACCELERATE, Scan((), None, ()), Counts.unknown(reason))
        words = words[1:]
    return read_options(call, words)


def read_options(
    call: Call,
    words: Sequence[Word],
    config: Document | None = None,
    before: Sequence[Argument] = (),
) -> LaunchContext:
    """Read the words after ``accelerate launch``.

    ``config`` stands for its config file, ``before`` are options in front of the typed ones.
    """
    scan = scan_argparse(call.command, words, OPTIONS).after(before)
    return _Launch(call, scan, config).context()


def read_config_alone(
    command: Command, config: Document, surroundings: Surroundings
) -> LaunchContext:
    """What the config file says about any launch with it; the only word names the file."""
    program = command.words[0]

    def nested(words: tuple[Word, ...]) -> LaunchContext:
        raise LookupError("a config file starts no other launcher")

    call = Call(command, program, (), (), surroundings, nested)
    return _Launch(call, Scan((), None, ()), config).context()


class _Launch(Struct):
    """One launch: the typed options, then what the config file says."""

    call: Call
    scan: Scan
    config: Document | None = None
    troubles: list[LaunchTrouble] = field(default_factory=list)
    unread: str = ""

    def context(self) -> LaunchContext:
        counts = self._counts()
        scan = self.scan
        if self.config is not None and isinstance(self.config.root, Object):
            deepspeed = self._way() is _Way.DEEPSPEED
            scan = scan.after([*config_options(self.config, scan, deepspeed=deepspeed)])
        context = self.call.context(
            LauncherName.ACCELERATE,
            scan,
            counts,
            module=scan.has("module"),
            troubles=self.troubles,
            config=self.config,
        )
        if not self.unread:
            return context
        return replace(context, launcher_arguments=ScriptArguments(scan.arguments, (), self.unread))

    def _counts(self) -> Counts:
        self._check_options()
        try:
            if self.config is None:
                self.config = self._read_config()
            else:
                check_accelerate_config(self.config)
        except AccelerateConfigError as error:
            self.config = None
            self.troubles.append(error.trouble)
            return Counts.unknown(str(error))
        except YamlUnavailableError as error:
            self.unread = str(error)
            return Counts.unknown(f"{error}, such as the config of accelerate launch")
        except _HiddenConfigError as hidden:
            return Counts.unknown(str(hidden))
        way = self._way()
        self._check_deepspeed(way)
        if way is _Way.TPU or way is _Way.SAGEMAKER:
            return Counts.unknown("dsguard does not read launches on TPUs or SageMaker")
        processes, machines = self._processes(), self._machines()
        for fact in (processes, machines):
            if isinstance(fact, Unknown):
                return Counts.unknown(fact.reason)
        if not isinstance(processes, Known) or not isinstance(machines, Known):
            return Counts.unknown("the number of processes is in conflict")
        if way is _Way.GUESSED:
            alone = self.call.surroundings.devices_per_node == 1
            way = _Way.SIMPLE if alone or processes.value <= 1 else _Way.TORCHRUN
        if way is _Way.SIMPLE:
            return self._simple(processes, machines)
        if machines.value <= 1:
            return self._torchrun(default(1, "accelerate launch"), processes)
        return self._on_machines(way, processes, machines)

    def _check_options(self) -> None:
        scan = self.scan
        exclusive = [found for dest in _EXCLUSIVE if (found := scan.last(dest))]
        if len(exclusive) > 1:
            message = f"{exclusive[0].flag} and {exclusive[1].flag} cannot be combined"
            self._refuse("conflicting-options", message, exclusive[1].location)
        processes = scan.integer("num_processes")
        multi = scan.last("multi_gpu")
        if multi is not None and isinstance(processes, Known) and processes.value < 2:
            message = f"--multi_gpu needs at least 2 processes, not {processes.value}"
            self._refuse("conflicting-options", message, multi.location)
        parallelism = scan.last("use_parallelism_config")
        if parallelism is not None and not scan.has("use_fsdp"):
            message = f"{parallelism.flag} needs --use_fsdp"
            self._refuse("conflicting-options", message, parallelism.location)
        module, no_python = scan.last("module"), scan.last("no_python")
        if module is not None and no_python is not None:
            message = f"{module.flag} and {no_python.flag} cannot be combined"
            self._refuse("conflicting-options", message, no_python.location)

    def _check_deepspeed(self, way: _Way) -> None:
        """Options that count for DeepSpeed only, and the precision of the config file."""
        if self.config is not None and not self.scan.has("mixed_precision"):
            trouble = precision_trouble(self.config) if way is not _Way.SAGEMAKER else None
            self.troubles.extend([trouble] if trouble is not None else [])
        # Without a config file that is read, the default one may say that DeepSpeed is used.
        if way in (_Way.DEEPSPEED, _Way.SAGEMAKER) or self.scan.hidden is not None:
            return
        if self.config is None and not any(self.scan.has(dest) for dest in _EXCLUSIVE):
            return
        typed = next((a for a in self.scan.arguments if a.name in _ONLY_DEEPSPEED), None)
        if typed is not None:
            message = f"{typed.flag} is ignored: this launch does not use DeepSpeed"
            self._warn("deepspeed-options-ignored", message, typed.location)

    def _read_config(self) -> Document | None:
        surroundings = self.call.surroundings
        named = self.scan.text("config_file")
        if isinstance(named, Unknown):
            raise _HiddenConfigError(named.reason)
        if isinstance(named, Known):
            at = named.origin.location or self.call.location
            return read_accelerate_config(surroundings.folder / named.value, named.value, at)
        path = surroundings.environ.accelerate_config
        if path is None or self.scan.has("cpu"):
            return None
        return read_accelerate_config(path, str(path), self.call.location)

    def _way(self) -> _Way:
        scan, config = self.scan, self.config
        if scan.has("cpu"):
            return _Way.SIMPLE
        if any(scan.has(dest) for dest in _PARADIGMS):
            if scan.has("use_deepspeed"):
                return _Way.DEEPSPEED
            torchrun = ("use_fsdp", "use_megatron_lm", "multi_gpu")
            return _Way.TORCHRUN if any(scan.has(dest) for dest in torchrun) else _Way.TPU
        if config is None:
            return _Way.GUESSED
        if config.value.get("compute_environment", "LOCAL_MACHINE") != "LOCAL_MACHINE":
            return _Way.SAGEMAKER
        kind = config.value["distributed_type"]
        return _WAYS.get(kind, _Way.TORCHRUN) if isinstance(kind, str) else _Way.SIMPLE

    def _processes(self) -> Fact:
        fact = self._number("num_processes")
        if fact is not None and not (isinstance(fact, Known) and fact.value == -1 and self.config):
            return fact
        if self.config is None:
            devices = self.call.surroundings.devices
            reason = "without --num_processes, accelerate counts the devices of the machine"
            return devices or Unknown(reason)
        if fact is None and self.config.value.get("distributed_type") == "NO":
            return default(1, "accelerate launch")
        if "num_processes" in self.config.value and fact is None:
            return Unknown(f"num_processes is empty in {self.config.source.name}")
        message = f"num_processes is neither typed nor in {self.config.source.name}"
        self._refuse("num-processes-missing", message, self.call.location)
        return Unknown(message)

    def _machines(self) -> Fact:
        fact = self._number("num_machines")
        return default(1, "accelerate launch") if fact is None else fact

    def _simple(self, processes: Known, machines: Known) -> Counts:
        """One process, started by plain python, or by ``mpirun`` where a hostfile is named."""
        if self._text("mpirun_hostfile", "/mpirun_config/mpirun_hostfile") is not None:
            return Counts.of(machines, self._share(processes, machines))
        if machines.value > 1:
            return Counts.unknown("accelerate starts one process on each machine, without ranks")
        if processes.value == 1:
            return self._torchrun(default(1, "accelerate launch"), processes)
        kind = self.config.value.get("distributed_type") if self.config is not None else None
        if kind in ("NO", False) and processes.value > 1:
            message = (
                f"num_processes {processes.value} is ignored: the config says distributed_type "
                "NO, so one process is started"
            )
            self._warn("processes-ignored", message, self._at(processes))
        one = default(1, "accelerate launch without a distributed type")
        return Counts.of(default(1, "accelerate launch"), one)

    def _torchrun(self, nodes: Known, processes: Known) -> Counts:
        if processes.value <= 0:
            message = f"{processes.value} processes on a machine: there must be at least one"
            self._refuse("bad-value", message, self._at(processes))
        return Counts.of(nodes, processes)

    def _on_machines(self, way: _Way, processes: Known, machines: Known) -> Counts:
        rank = self._number("machine_rank")
        if rank is None and self.config is None:
            message = f"{machines.value} machines need --machine_rank on each of them"
            self._refuse("machine-rank-missing", message, self._at(machines))
        if processes.value % machines.value:
            kept = processes.value // machines.value * machines.value
            message = (
                f"{processes.value} processes over {machines.value} machines: "
                f"{processes.value // machines.value} on each, {kept} in all"
            )
            self._warn("processes-dropped", message, self._at(processes))
        share = self._share(processes, machines)
        launcher = self._text(
            "deepspeed_multinode_launcher", "/deepspeed_config/deepspeed_multinode_launcher"
        )
        if way is _Way.TORCHRUN or (isinstance(launcher, Known) and launcher.value == "standard"):
            return self._torchrun(machines, share)
        if isinstance(launcher, Unknown):
            return Counts.unknown(launcher.reason)
        return self._deepspeed(launcher, share, rank or default(0, "accelerate launch"))

    def _deepspeed(self, launcher: Fact | None, share: Known, rank: Fact) -> Counts:
        """The ``deepspeed`` launcher counts hosts by its hostfile; machines are not passed on."""
        backend = launcher.value if isinstance(launcher, Known) else "pdsh"
        named = self._text("deepspeed_hostfile", "/deepspeed_config/deepspeed_hostfile")
        if isinstance(named, Unknown) and self.call.surroundings.hostfile is None:
            return Counts.unknown(named.reason)
        hostfile = None
        if named is None and self.call.surroundings.hostfile is None:
            message = (
                f"the {backend} launcher gets no hostfile: every machine trains alone, "
                f"with {share.value} processes"
            )
            at = launcher.origin.location if isinstance(launcher, Known) else None
            self._warn("pdsh-without-hostfile", message, at or self.call.location)
        else:
            try:
                hostfile, troubles = find_hostfile(
                    self.call, named if isinstance(named, Known) else None
                )
            except (HostfileError, HostfileElsewhereError) as error:
                self.troubles.append(error.trouble)
                return Counts.unknown(str(error))
            self.troubles.extend(troubles)
        filters = "deepspeed_exclusion_filter", "deepspeed_inclusion_filter"
        exclude, include = (self._text(name, f"/deepspeed_config/{name}") for name in filters)
        include = include if exclude is None else None
        filtered = exclude is not None or include is not None
        counts, more = allocate(
            Request(
                location=self.call.location,
                hostfile=hostfile,
                include=include,
                exclude=exclude,
                num_gpus=None if filtered else share,
                node_rank=rank,
                backend="pdsh" if backend == "nossh" else backend.lower(),
                no_ssh=backend == "nossh",
                visible=self.call.variable("CUDA_VISIBLE_DEVICES"),
                devices=self.call.surroundings.devices,
            )
        )
        self.troubles.extend(more)
        return counts

    def _share(self, processes: Known, machines: Known) -> Known:
        """The processes of one machine: the total divided, the rest dropped."""
        share = processes.value // machines.value
        formula = f"{processes.value} processes // {machines.value} machines = {share}"
        origin = Origin(OriginKind.DERIVED, processes.origin.location, formula=formula)
        return Known(share, origin)

    def _number(self, name: str) -> Fact | None:
        fact = self.scan.integer(name)
        if fact is not None:
            return fact
        fact = self._from_config(f"/{name}")
        if not isinstance(fact, Known):
            return fact
        if not isinstance(fact.value, int) or isinstance(fact.value, bool):
            return Unknown(f"{name} in the config of accelerate launch is not an integer")
        return sensible(fact.value, fact.origin)

    def _text(self, name: str, pointer: str) -> Fact | None:
        fact = self.scan.text(name)
        if fact is not None:
            return fact
        fact = self._from_config(pointer)
        return Known(str(fact.value), fact.origin) if isinstance(fact, Known) else fact

    def _from_config(self, pointer: str) -> Fact | None:
        node = self.config.get(pointer) if self.config is not None else None
        if node is None or node.value is None or self.config is None:
            return None
        place = self.config.locate(pointer)
        return Known(node.value, Origin(OriginKind.JOBFILE, place))

    def _at(self, fact: Known) -> Location:
        return fact.origin.location or self.call.location

    def _refuse(self, kind: TroubleKind, message: str, location: Location) -> None:
        self.troubles.append(LaunchTrouble(kind, message, location, True))

    def _warn(self, kind: TroubleKind, message: str, location: Location) -> None:
        self.troubles.append(LaunchTrouble(kind, message, location, False))


class _HiddenConfigError(Exception):
    """The name of the config file is only known to the shell."""
