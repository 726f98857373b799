"""Accelerate's config file: how to start the script, and the block form of a DeepSpeed config.

Sources: ``accelerate/utils/launch.py`` (``prepare_deepspeed_cmd_env`` exports the options) and
``accelerate/utils/dataclasses.py`` (``DeepSpeedPlugin`` builds a config of what is exported, and
``_deepspeed_config_checks`` refuses a config file beside such values) of 1.15.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dsguard.launch.context import Argument, LaunchContext, LaunchTrouble
from dsguard.launch.jobs.job import ConfigForm, Job, JobConfig
from dsguard.launch.jobs.keys import members
from dsguard.launch.launchers.accelerate_options import OPTIONS
from dsguard.model.digits import whole_number
from dsguard.model.fact import OriginKind
from dsguard.model.source import Location, Span
from dsguard.model.tree import Document, Member, Node, Object, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "accelerate"
TITLE = "Accelerate"
FRONT_END = "accelerate"

_BLOCK = "/deepspeed_config"
_REFUSED_WITH_FILE = frozenset(
    [
        "gradient_accumulation_steps",
        "gradient_clipping",
        "zero_stage",
        "offload_optimizer_device",
        "offload_param_device",
        "offload_param_nvme_path",
        "offload_optimizer_nvme_path",
        "zero3_save_16bit_model",
    ]
)
_NVME_PATHS = ("offload_optimizer_nvme_path", "offload_param_nvme_path")
_OPTIONS = frozenset(option.dest for option in OPTIONS.options) | {"deepspeed_config_file"}


def recognise(document: Document) -> bool:
    """Whether the file says how the processes are distributed."""
    keys = {member.key for member in members(document)}
    return bool(keys & {"distributed_type", "compute_environment"})


def read(launch: LaunchContext) -> Job | None:
    """What ``accelerate launch`` makes of its file and options; None where DeepSpeed is not used.

    ``launch`` is read already, so its launcher's arguments hold those of the file.
    """
    options = launch.launcher_arguments
    switch = options.get("use_deepspeed")
    if switch is None:
        return None
    named = options.get("deepspeed_config_file")
    config = JobConfig(ConfigForm.PATH, named) if named is not None else _built(launch, switch)
    return Job(NAME, TITLE, FRONT_END, launch.launcher_config, config=config)


def examine(launch: LaunchContext) -> Iterator[LaunchTrouble]:
    """What is wrong with the DeepSpeed part of the config file, given the whole launch."""
    document = launch.launcher_config
    if document is None or launch.launcher_arguments.get("use_deepspeed") is None:
        return
    yield from _file_and_values(launch, document)
    for member in members(document, _BLOCK):
        place = Location(document.source, member.key_span, f"{_BLOCK}/{member.key}")
        if member.key not in _OPTIONS:
            message = f"Accelerate has no DeepSpeed option {member.key!r} and ignores the key"
            yield LaunchTrouble("job-key-ignored", message, place, False)
        elif member.key in _NVME_PATHS and _on_nvme(launch, member.key):
            message = (
                f"accelerate launch does not pass {member.key} on: "
                "DeepSpeed gets a folder named none"
            )
            yield LaunchTrouble("nvme-path-ignored", message, place, False)


def _file_and_values(launch: LaunchContext, document: Document) -> Iterator[LaunchTrouble]:
    """A DeepSpeed config file excludes values for it in Accelerate's own file."""
    named = launch.arguments.get("deepspeed")
    if named is None or named.value is None:
        named = launch.launcher_arguments.get("deepspeed_config_file")
    if named is None or named.value is None:
        return
    found = [m for m in members(document, _BLOCK) if m.key.lower() in _REFUSED_WITH_FILE]
    places = [Location(document.source, m.span, f"{_BLOCK}/{m.key}") for m in found]
    names = [member.key for member in found]
    precision = launch.launcher_arguments.get("mixed_precision")
    if precision is not None and precision.kind is OriginKind.JOBFILE:
        places.append(precision.location)
        names.append("mixed_precision")
    if names:
        message = (
            f"{document.source.name} gives {', '.join(names)} although {named.flag} names a "
            "DeepSpeed config, where such values belong"
        )
        yield LaunchTrouble("config-file-with-values", message, places[0], True)


def _on_nvme(launch: LaunchContext, path_option: str) -> bool:
    """Whether what the path is for is offloaded to NVMe, as Accelerate builds the config."""
    device = launch.launcher_arguments.get(path_option.replace("nvme_path", "device"))
    named = launch.launcher_arguments.get("deepspeed_config_file")
    return named is None and device is not None and (device.value or "").lower() == "nvme"


def _block_place(document: Document | None) -> Location | None:
    """Where the DeepSpeed block is named in Accelerate's file."""
    if document is None:
        return None
    for pointer in (_BLOCK, "/distributed_type"):
        if document.get(pointer) is not None:
            return document.locate(pointer, "key")
    return None


def _built(launch: LaunchContext, switch: Argument) -> JobConfig:
    """The config that DeepSpeedPlugin builds where no file is named."""
    at = _block_place(launch.launcher_config) or switch.location
    try:
        document = _Builder(launch, at).document()
    except ValueError:
        # A value that is not known, or that the plugin stops over.
        document = None
    value = json.dumps(document.value) if document is not None else "{}"
    argument = Argument(
        "deepspeed_config", switch.flag, value, at, at, document is not None, switch.kind
    )
    return JobConfig(ConfigForm.INLINE, argument, document)


class _Builder:
    """Builds a document of options; what nobody gave stands at one place, ``at``.

    ``steps_per_print``, which the plugin sets to infinity to keep DeepSpeed quiet, is left out.
    """

    def __init__(self, launch: LaunchContext, at: Location) -> None:
        self._options = launch.launcher_arguments
        self._at = at

    def document(self) -> Document:
        zero = [
            self._member("stage", int, "zero_stage", 2),
            self._offload("offload_optimizer"),
            self._offload("offload_param"),
            self._member(
                "stage3_gather_16bit_weights_on_model_save",
                lambda text: text.lower() == "true",
                "zero3_save_16bit_model",
                False,
            ),
        ]
        root = [
            self._placed("train_batch_size", "auto"),
            self._placed("train_micro_batch_size_per_gpu", "auto"),
            self._member("gradient_accumulation_steps", _count, "gradient_accumulation_steps"),
            Member("zero_optimization", self._at.span, self._object(zero)),
        ]
        clipping = self._member("gradient_clipping", _limit, "gradient_clipping")
        if clipping.node.value:
            root.append(clipping)
        return Document(self._at.source, self._object(root))

    def _offload(self, name: str) -> Member:
        device = self._member("device", str.lower, f"{name}_device", "none")
        path = self._placed("nvme_path", "none" if device.node.value == "nvme" else None)
        return Member(name, device.key_span, self._object([device, path]))

    def _member(self, key: str, convert: Any, option: str, default: Any = "auto") -> Member:
        argument = self._options.get(option)
        if argument is None:
            return self._placed(key, default)
        if not argument.known or argument.value is None:
            raise ValueError(option)
        value = convert(argument.value)
        if argument.location.source is not self._at.source:
            return self._placed(key, value)
        start, value_span = argument.location.span.start, argument.value_location.span
        key_span = Span(start, min(start + len(argument.flag), value_span.start))
        return Member(key, key_span, Scalar(value_span, value))

    def _placed(self, key: str, value: Any) -> Member:
        return Member(key, self._at.span, Scalar(self._at.span, value))

    def _object(self, found: list[Member]) -> Node:
        return Object(self._at.span, tuple(found), {m.key: m.node.value for m in found})


def _count(text: str) -> int | str:
    number = whole_number(text)
    return text if number is None else number


def _limit(text: str) -> float | str:
    lower = text.lower()
    return lower if lower == "auto" else float(lower)
