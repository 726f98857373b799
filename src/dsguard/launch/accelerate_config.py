"""The config file of ``accelerate launch``, read with every key and value at its place.

Accelerate reads it with PyYAML, or as JSON by its suffix. Source:
``accelerate/commands/config/config_args.py`` (``load_config_from_file``, ``process_config``) and
``accelerate/commands/launch.py`` (``_validate_launch_command``) of 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.context import Argument, LaunchTrouble, TroubleKind
from dsguard.launch.jobs.job import JobFileError
from dsguard.launch.jobs.keys import key_argument, members, text_of
from dsguard.launch.jobs.load import load_job
from dsguard.model.fact import OriginKind
from dsguard.model.source import Location
from dsguard.model.tree import Document, Object

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dsguard.launch.scan import Scan

_KEYS = """
    command_file commands compute_environment debug deepspeed_config distributed_type
    downcast_bf16 dynamo_backend dynamo_config enable_cpu_affinity fp16 fp8_config fsdp_config
    gpu_ids machine_rank main_process_ip main_process_port main_training_function
    megatron_lm_config mixed_precision mpirun_config num_machines num_processes
    parallelism_config rdzv_backend same_network tpu_env tpu_name tpu_use_cluster tpu_use_sudo
    tpu_vm tpu_zone use_cpu
"""
KEYS = frozenset(_KEYS.split())
"""What may stand at the top of the file; Accelerate 1.15 refuses any other key."""

OLDER_KEYS = frozenset(("ipex_config", "tp_config"))
"""What earlier releases knew and wrote into the file."""

_TYPES = """
    NO MULTI_CPU MULTI_GPU MULTI_NPU MULTI_MLU MULTI_SDAA MULTI_MUSA MULTI_XPU MULTI_HPU
    MULTI_NEURON DEEPSPEED FSDP XLA MEGATRON_LM TP
"""
DISTRIBUTED_TYPES = frozenset(_TYPES.split())
"""What ``distributed_type`` may be; ``TP`` is only known to earlier releases."""

MIXED_PRECISIONS = ("no", "fp8", "fp16", "bf16")
"""What ``mixed_precision`` may be, in any case of letters."""

_NOT_OPTIONS = ("compute_environment", "mixed_precision", "distributed_type", "fp16")
"""Keys that stand for no option of the same name."""

_HAVE_DEFAULTS = frozenset(
    [
        "same_network",
        "rdzv_backend",
        "tpu_use_cluster",
        "tpu_use_sudo",
        "downcast_bf16",
        "enable_cpu_affinity",
    ]
)
"""Options whose default is not None, so that the file's key never gets a chance."""

_PREFIXES = {"fsdp_config": "fsdp", "fp8_config": "fp8", "dynamo_config": "dynamo_"}
"""Blocks whose keys are short for longer options."""

_PARADIGMS = {
    "DEEPSPEED": "use_deepspeed",
    "FSDP": "use_fsdp",
    "MEGATRON_LM": "use_megatron_lm",
    "XLA": "tpu",
}
"""The switch that ``distributed_type`` stands for, where no switch is typed."""


class AccelerateConfigError(Exception):
    """The config file says something that Accelerate refuses."""

    def __init__(self, kind: TroubleKind, message: str, location: Location) -> None:
        super().__init__(message)
        self.trouble = LaunchTrouble(kind, message, location, True)


def read_accelerate_config(path: Path, name: str, named_at: Location) -> Document:
    """Read and check a config file; ``named_at`` is where the launch names it.

    Raises:
        AccelerateConfigError: there is no such file, or Accelerate refuses it.
        dsguard.reading.errors.YamlUnavailableError: dsguard cannot read YAML in this installation.
    """
    try:
        document = load_job(path, name, named_at)
    except JobFileError as error:
        trouble = error.trouble
        if trouble.kind == "job-file-missing":
            message = f"the Accelerate config file {trouble.message}"
            raise AccelerateConfigError(
                "accelerate-config-missing", message, trouble.location
            ) from None
        raise AccelerateConfigError(
            "accelerate-config-syntax", trouble.message, trouble.location
        ) from None
    check_accelerate_config(document)
    return document


def check_accelerate_config(document: Document) -> None:
    """Look for what Accelerate refuses.

    Raises:
        AccelerateConfigError: it refuses the file.
    """
    root, name = document.root, document.source.name
    if not isinstance(root, Object):
        message = f"{name} is not a mapping of keys to values"
        raise AccelerateConfigError("accelerate-config-syntax", message, document.locate(""))
    if root.value.get("compute_environment", "LOCAL_MACHINE") != "LOCAL_MACHINE":
        return
    if "distributed_type" not in root.value:
        message = f"{name} has no distributed_type"
        raise AccelerateConfigError("accelerate-config-value", message, document.locate(""))
    kind = root.value["distributed_type"]
    # Only text is looked up: an unquoted NO is false by YAML 1.1, and passes.
    if isinstance(kind, str) and kind not in DISTRIBUTED_TYPES:
        message = f"there is no distributed_type {kind!r}"
        place = document.locate("/distributed_type")
        raise AccelerateConfigError("accelerate-config-value", message, place)
    for member in root.members:
        if member.key not in KEYS | OLDER_KEYS:
            message = f"Accelerate 1.15 knows no key {member.key!r} in its config file"
            place = Location(document.source, member.key_span, f"/{member.key}")
            raise AccelerateConfigError("accelerate-config-key", message, place)


def precision_trouble(document: Document) -> LaunchTrouble | None:
    """What Accelerate makes of ``mixed_precision`` where no option overrides it."""
    node = document.get("/mixed_precision")
    if node is None or node.value is None:
        return None
    value, place = node.value, document.locate("/mixed_precision")
    if isinstance(value, str):
        if value.lower() in MIXED_PRECISIONS:
            return None
        message = f"there is no mixed_precision {value!r}"
    else:
        written = document.source.slice(place.span)
        read = text_of(value)
        message = f"mixed_precision is no text: YAML reads {written} without quotes as {read}"
    return LaunchTrouble("accelerate-config-value", message, place, True)


def config_options(document: Document, scan: Scan, *, deepspeed: bool) -> Iterator[Argument]:
    """The options that the file gives, by the names that the launcher stores them by.

    A nested key counts unless its option is typed, a key at the top where the option has no
    default either. The DeepSpeed block is left out where DeepSpeed is not used.
    """
    root = document.value
    if root.get("compute_environment", "LOCAL_MACHINE") != "LOCAL_MACHINE":
        return
    for member in members(document):
        if isinstance(member.node, Object):
            if deepspeed or member.key != "deepspeed_config":
                yield from _block(document, member.key, scan)
        elif member.key == "mixed_precision":
            argument = key_argument(document, member, "mixed_precision")
            if argument is not None and not scan.has("mixed_precision"):
                yield argument
        elif member.key == "distributed_type":
            yield from _paradigm(document, scan)
        elif member.key not in _HAVE_DEFAULTS and member.key not in _NOT_OPTIONS:
            argument = key_argument(document, member, member.key)
            if argument is not None and not scan.has(member.key):
                yield argument


def _block(document: Document, key: str, scan: Scan) -> Iterator[Argument]:
    prefix = _PREFIXES.get(key, "")
    for member in members(document, f"/{key}"):
        name = member.key
        if not name.startswith(prefix):
            name = f"{prefix.rstrip('_')}_{name}"
        argument = key_argument(document, member, name, f"/{key}")
        if argument is not None and not scan.has(name):
            yield argument


def _paradigm(document: Document, scan: Scan) -> Iterator[Argument]:
    """The switch that ``distributed_type`` stands for."""
    place = document.locate("/distributed_type")
    typed = ("multi_gpu", "tpu", "tpu_use_cluster", *_PARADIGMS.values())
    kind = document.value.get("distributed_type")
    if not isinstance(kind, str) or any(scan.has(dest) for dest in ("cpu", *typed)):
        return
    name = _PARADIGMS.get(kind)
    if name is None and kind.startswith("MULTI_") and kind != "MULTI_CPU":
        name = "multi_gpu"
    if name is not None:
        yield Argument(name, "distributed_type", None, place, place, kind=OriginKind.JOBFILE)
