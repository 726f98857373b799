"""axolotl: one YAML file, ``--key=value`` flags that win over it.

Sources: ``axolotl/utils/schemas/training.py`` (the defaults), ``axolotl/utils/schemas/
validation.py``, ``axolotl/utils/config/__init__.py`` (``normalize_config``) and
``axolotl/cli/config.py`` (``load_cfg``); read, not run. ``deepspeed`` is a path, which is read
as strict JSON, or the config itself; either ends in ``TrainingArguments(deepspeed=…)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.context import Argument, LaunchContext, LaunchTrouble, ScriptArguments
from dsguard.launch.jobs.job import Job
from dsguard.launch.jobs.keys import filled, is_on, key_arguments, missing, whole
from dsguard.model.fact import OriginKind

if TYPE_CHECKING:
    from dsguard.model.source import Location
    from dsguard.model.tree import Document

NAME = "axolotl"
TITLE = "axolotl"
FRONT_END = "transformers"
SHIPPED: frozenset[str] = frozenset()

_TOTAL = "total_batch_size"
_NAMES = {
    "micro_batch_size": "per_device_train_batch_size",
    "batch_size": _TOTAL,
    "num_epochs": "num_train_epochs",
    "lr_scheduler": "lr_scheduler_type",
    "optimizer": "optim",
}
"""axolotl's name → the one of TrainingArguments; ``batch_size`` has none."""

_DEFAULTS: dict[str, str | None] = {
    "per_device_train_batch_size": "1",
    "num_train_epochs": "1.0",
    "lr_scheduler_type": "cosine",
    "optim": "adamw_torch_fused",
    # A part of all steps, or a number of them, by release.
    "warmup_steps": None,
}


def recognise(document: Document) -> bool:
    """Whether a base model is trained with a micro batch or on axolotl's data sets."""
    value = document.value if isinstance(document.value, dict) else {}
    others = ("micro_batch_size", "datasets", "pretraining_dataset", "sequence_len")
    return "base_model" in value and any(key in value for key in others)


def read(document: Document) -> Job:
    """The keys under the names of TrainingArguments."""
    arguments = [_plain_switch(a) for a in key_arguments(document, _NAMES)]
    return Job(NAME, TITLE, FRONT_END, document, tuple(arguments))


def typed(launch: LaunchContext) -> list[Argument]:
    """Flags go by the same names as the keys."""
    renamed = [a._replace(name=_NAMES.get(a.name, a.name)) for a in launch.arguments]
    return [_plain_switch(argument) for argument in renamed]


def fill(launch: LaunchContext, arguments: ScriptArguments, at: Location) -> list[Argument]:
    """The defaults of axolotl's schema where they are not those of transformers."""
    added = [filled(name, value, TITLE, at) for name, value in missing(_DEFAULTS, arguments)]
    if arguments.get("gradient_accumulation_steps") is None:
        # Whether a total alone is divided, or overruled by the default of 1, changed by release.
        alone = arguments.get(_TOTAL) is None
        added.append(filled("gradient_accumulation_steps", "1" if alone else None, TITLE, at))
    if arguments.get("bf16") is None:
        # "auto": on where the device can, unless fp16 is on.
        added.append(filled("bf16", "false" if is_on(arguments.get("fp16")) else None, TITLE, at))
    return added


def examine(launch: LaunchContext, arguments: ScriptArguments) -> list[LaunchTrouble]:
    """A total batch and an accumulation exclude each other."""
    total = arguments.get(_TOTAL)
    steps = arguments.get("gradient_accumulation_steps")
    if steps is None or steps.kind is OriginKind.DEFAULT or not whole(steps) or not whole(total):
        return []
    assert total is not None
    message = f"batch_size {total.value} and gradient_accumulation_steps {steps.value} are both set"
    return [LaunchTrouble("job-keys-conflict", message, total.value_location, True)]


def _plain_switch(argument: Argument) -> Argument:
    """``bf16: auto`` is decided by the device."""
    if argument.name == "bf16" and (argument.value or "").lower() == "auto":
        return argument._replace(known=False)
    return argument
