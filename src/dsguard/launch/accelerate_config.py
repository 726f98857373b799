"""The config file of ``accelerate launch``, read with every key and value at its place.

Accelerate reads it with PyYAML, so by YAML 1.1: ``no`` is false. Source:
``accelerate/commands/config/config_args.py`` (``load_config_from_file``, ``process_config``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dsguard.launch.context import LaunchTrouble, TroubleKind
from dsguard.model.source import Location, Source, Span
from dsguard.model.tree import Array, Document, Member, Node, Object, Scalar

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

_MOST_NODES = 100_000

_KNOWN_TAG = re.compile(r"tag:yaml\.org,2002:(map|seq|str|int|float|bool|null|timestamp)")
_WORDS = ("yes", "no", "true", "false", "on", "off")
_BOOLEAN = re.compile("|".join(form for w in _WORDS for form in (w, w.title(), w.upper())))
_OCTAL = re.compile(r"[-+]?0[0-7_]+")
_INTEGER = re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+][0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


class AccelerateConfigError(Exception):
    """The config file says something that Accelerate refuses."""

    def __init__(self, kind: TroubleKind, message: str, location: Location) -> None:
        super().__init__(message)
        self.trouble = LaunchTrouble(kind, message, location, True)


class YamlUnavailableError(Exception):
    """The ``yaml`` extra is not installed."""


def read_accelerate_config(path: Path, name: str, named_at: Location) -> Document:
    """Read and check a config file; ``named_at`` is where the launch names it.

    Raises:
        AccelerateConfigError: there is no such file, or Accelerate refuses it.
        YamlUnavailableError: dsguard cannot read YAML in this installation.
    """
    try:
        data = path.read_bytes() if path.is_file() else None
    except (OSError, ValueError):
        data = None
    if data is None:
        message = f"there is no Accelerate config file {name!r}"
        raise AccelerateConfigError("accelerate-config-missing", message, named_at)
    try:
        source = Source(name, data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        message = f"{name} is not UTF-8 text"
        raise AccelerateConfigError("accelerate-config-syntax", message, named_at) from None
    document = Document(source, _read_yaml(source))
    _check(document)
    return document


def _check(document: Document) -> None:
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


def _read_yaml(source: Source) -> Node:
    try:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError
    except ImportError:
        raise YamlUnavailableError from None
    try:
        root = YAML(typ="safe", pure=True).compose(source.text)
        return _Reader().node(root) if root is not None else _nothing(source)
    except (YAMLError, ValueError, RecursionError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        at = min(mark.index if mark is not None else 0, len(source.text))
        problem = getattr(error, "problem", None) or "it cannot be read"
        message = f"{source.name} is not YAML that Accelerate reads: {problem}"
        place = Location(source, Span(at, at))
        raise AccelerateConfigError("accelerate-config-syntax", message, place) from None


def _nothing(source: Source) -> Node:
    return Scalar(Span(0, len(source.text)), None)


class _Reader:
    """Makes our tree of the nodes that a YAML composer gives."""

    def __init__(self) -> None:
        self.left = _MOST_NODES

    def node(self, node: Any) -> Node:
        # An alias stands for a node given before: nested ones could grow without end.
        self.left -= 1
        if self.left < 0 or not _KNOWN_TAG.fullmatch(str(node.tag)):
            raise ValueError
        span = Span(node.start_mark.index, node.end_mark.index)
        if node.id == "mapping":
            members = tuple(self._members(node))
            return Object(span, members, {member.key: member.node.value for member in members})
        if node.id == "sequence":
            items = tuple(self.node(item) for item in node.value)
            return Array(span, items, [item.value for item in items])
        return Scalar(span, _scalar(node))

    def _members(self, node: Any) -> Iterator[Member]:
        for key, value in node.value:
            if key.id != "scalar":
                raise ValueError
            name = _scalar(key)
            if name == "<<" and not key.style:
                yield from self._merged(value)
                continue
            span = Span(key.start_mark.index, key.end_mark.index)
            yield Member(str(name), span, self.node(value))

    def _merged(self, node: Any) -> Iterator[Member]:
        """The members behind ``<<``; a key of the mapping itself comes later and wins."""
        for part in reversed(node.value) if node.id == "sequence" else (node,):
            if part.id != "mapping":
                raise ValueError
            yield from self._members(part)


def _scalar(node: Any) -> str | int | float | bool | None:
    """The value of a scalar by YAML 1.1, as PyYAML resolves it; dates and 1:30 stay strings."""
    written: str = node.value
    if node.style:
        return written
    if written in ("", "~", "null", "Null", "NULL"):
        return None
    if _BOOLEAN.fullmatch(written):
        return written.lower() in ("yes", "true", "on")
    digits = written.replace("_", "")
    if _OCTAL.fullmatch(written):
        return int(digits, 8)
    if _INTEGER.fullmatch(written):
        return int(digits, 0)
    if _FLOAT.fullmatch(written):
        return float(digits)
    if _SPECIAL.fullmatch(written):
        return float(digits.replace(".", ""))
    return written
