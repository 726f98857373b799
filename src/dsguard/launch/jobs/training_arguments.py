"""A file of ``TrainingArguments``, given to a script as its only argument.

``HfArgumentParser.parse_json_file`` and ``parse_yaml_file`` of transformers 5.24
(``transformers/hf_argparser.py``) hand the values over as they are, without converting them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.context import (
    ONLY_TRAINING_ARGUMENTS,
    Argument,
    LaunchContext,
    LaunchTrouble,
    ScriptArguments,
)
from dsguard.launch.jobs.job import Job
from dsguard.launch.jobs.keys import key_arguments, members
from dsguard.model.source import Location
from dsguard.reading.yaml import plain_value

if TYPE_CHECKING:
    from dsguard.model.tree import Document

NAME = "transformers"
TITLE = "HfArgumentParser"
FRONT_END = "transformers"
SHIPPED: frozenset[str] = frozenset()

_NUMBERS = frozenset(
    [
        "learning_rate",
        "weight_decay",
        "adam_beta1",
        "adam_beta2",
        "adam_epsilon",
        "max_grad_norm",
        "num_train_epochs",
        "max_steps",
        "warmup_ratio",
        "warmup_steps",
        "per_device_train_batch_size",
        "per_device_eval_batch_size",
        "gradient_accumulation_steps",
    ]
)


def recognise(document: Document) -> bool:
    """Whether a key stands at the top that only TrainingArguments have."""
    return any(member.key in ONLY_TRAINING_ARGUMENTS for member in members(document))


def read(document: Document) -> Job:
    """The keys are the arguments; a number that is text is passed on as text."""
    troubles = tuple(_numbers_as_text(document))
    arguments = tuple(key_arguments(document, {}))
    return Job(NAME, TITLE, FRONT_END, document, arguments, troubles=troubles)


def typed(launch: LaunchContext) -> list[Argument]:
    """Flags behind the file win over it in the scripts that take both."""
    return list(launch.arguments)


def fill(launch: LaunchContext, arguments: ScriptArguments, at: Location) -> list[Argument]:
    """Nothing: the defaults are those of the script's own dataclass."""
    return []


def examine(launch: LaunchContext, arguments: ScriptArguments) -> list[LaunchTrouble]:
    """Nothing beyond what the file alone shows."""
    return []


def _numbers_as_text(document: Document) -> list[LaunchTrouble]:
    troubles = []
    for member in members(document):
        value = member.node.value
        if member.key not in _NUMBERS or not isinstance(value, str) or not _is_number(value):
            continue
        place = Location(document.source, member.node.span, f"/{member.key}")
        message = f"{member.key} is the text {value!r}, not a number"
        raw = document.source.slice(member.node.span)
        if raw == value and isinstance(plain_value(raw), str):
            message += ": a YAML number with an exponent needs a dot and the exponent's sign"
        troubles.append(LaunchTrouble("job-number-is-text", message, place, False))
    return troubles


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
