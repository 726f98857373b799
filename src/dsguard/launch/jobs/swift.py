"""ms-swift: a YAML or JSON file in front of the flags, or flags alone.

Sources: ``swift/cli/main.py`` (``parse_yaml_args`` puts the keys where the file stands, so that
flags behind it win; in releases that have ``--config``, ``prepare_config_args`` puts them last, so
that the file wins), ``swift/trainers/arguments.py`` (``TrainArgumentsMixin``) and
``swift/arguments/sft_args.py``; read, not run.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dsguard.launch.context import Argument, LaunchContext, LaunchTrouble, ScriptArguments
from dsguard.launch.jobs.job import Job
from dsguard.launch.jobs.keys import filled, key_arguments, missing, whole
from dsguard.model.fact import Fact, Known

if TYPE_CHECKING:
    from dsguard.model.source import Location
    from dsguard.model.tree import Document

NAME = "swift"
TITLE = "ms-swift"
FRONT_END = "transformers"
SHIPPED = frozenset(["zero0", "zero1", "zero2", "zero3", "zero2_offload", "zero3_offload"])

_NAMES = {"batch_size": "per_device_train_batch_size"}
"""The name of releases before 3."""

_TUNERS = ("tuner_type", "train_type", "sft_type")
_SAMPLES = 16
"""How many samples a step takes where no accumulation is given."""

_DEFAULTS: dict[str, str | None] = {
    "per_device_train_batch_size": "1",
    "weight_decay": "0.1",
    "adam_beta2": "0.95",
    "lr_scheduler_type": "cosine",
    # By the dtype of the model.
    "bf16": None,
    "fp16": None,
}


def recognise(document: Document) -> bool:
    """Whether a tuner of ms-swift is chosen for a model."""
    value = document.value if isinstance(document.value, dict) else {}
    model = any(key in value for key in ("model", "model_id_or_path", "model_type"))
    return model and any(key in value for key in _TUNERS)


def read(document: Document) -> Job:
    """The keys are the arguments; ``ENV`` holds variables, which are none."""
    arguments = [a for a in key_arguments(document, _NAMES) if a.flag != "ENV"]
    return Job(NAME, TITLE, FRONT_END, document, tuple(arguments))


def typed(launch: LaunchContext) -> list[Argument]:
    """Flags, by the names of TrainingArguments."""
    return [a._replace(name=_NAMES.get(a.name, a.name)) for a in launch.arguments]


def fill(launch: LaunchContext, arguments: ScriptArguments, at: Location) -> list[Argument]:
    """The defaults; the accumulation makes a step of sixteen samples or more."""
    added = [filled(name, value, TITLE, at) for name, value in missing(_DEFAULTS, arguments)]
    known = ScriptArguments([*added, *arguments])
    if arguments.get("learning_rate") is None:
        added.append(filled("learning_rate", _learning_rate(launch, arguments), TITLE, at))
    if arguments.get("gradient_accumulation_steps") is None:
        steps = _accumulation(known, launch.world_size)
        added.append(filled("gradient_accumulation_steps", steps, TITLE, at))
    return added


def examine(launch: LaunchContext, arguments: ScriptArguments) -> list[LaunchTrouble]:
    """Nothing."""
    return []


def _learning_rate(launch: LaunchContext, arguments: ScriptArguments) -> str | None:
    """By the tuner; which one is the default differs between the commands."""
    tuner = arguments.get(*_TUNERS)
    if tuner is None:
        pretraining = launch.script is not None and launch.script.text == "swift.cli.pt"
        return None if pretraining else "1e-4"
    if not tuner.known:
        return None
    return "1e-5" if tuner.value == "full" else "1e-4"


def _accumulation(arguments: ScriptArguments, world_size: Fact) -> str | None:
    micro = whole(arguments.get("per_device_train_batch_size"))
    if not isinstance(world_size, Known) or micro is None or micro < 1 or world_size.value < 1:
        return None
    return str(max(1, math.ceil(_SAMPLES / micro / world_size.value)))
