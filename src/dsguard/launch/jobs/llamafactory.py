"""LLaMA-Factory: TrainingArguments in a YAML or JSON file, ``key=value`` behind it.

Sources: ``llamafactory/hparams/parser.py`` (``read_args``: OmegaConf merges the words behind the
file over it), ``llamafactory/launcher.py``; read, not run. Its defaults are those of
``Seq2SeqTrainingArguments``. Version 1 (``USE_V1=1``) is
:mod:`~dsguard.launch.jobs.llamafactory_v1`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.arguments import joined
from dsguard.launch.context import (
    Argument,
    LaunchContext,
    LauncherName,
    LaunchTrouble,
    ScriptArguments,
)
from dsguard.launch.jobs.find import SUFFIXES
from dsguard.launch.jobs.job import Job
from dsguard.launch.jobs.keys import is_on, key_arguments

if TYPE_CHECKING:
    from dsguard.model.source import Location
    from dsguard.model.tree import Document

NAME = "llamafactory"
TITLE = "LLaMA-Factory"
FRONT_END = "transformers"
SHIPPED: frozenset[str] = frozenset()

_STAGES = ("pt", "sft", "rm", "ppo", "dpo", "kto")


def recognise(document: Document) -> bool:
    """Whether a stage of LLaMA-Factory or its ``finetuning_type`` is given for a model."""
    value = document.value if isinstance(document.value, dict) else {}
    ours = value.get("stage") in _STAGES or "finetuning_type" in value
    return ours and "model_name_or_path" in value


def read(document: Document) -> Job:
    """The keys are arguments of ``Seq2SeqTrainingArguments`` and of LLaMA-Factory's own."""
    return Job(NAME, TITLE, FRONT_END, document, tuple(key_arguments(document, {})))


def typed(launch: LaunchContext) -> list[Argument]:
    """``key=value`` words behind a file, flags where there is no file."""
    words = launch.arguments.positionals
    if not words or not words[0].text.endswith(SUFFIXES):
        return list(launch.arguments)
    overrides = []
    for word in words[1:]:
        key, equals, _ = word.text.partition("=")
        if key and equals:
            overrides.append(joined(launch.command, word, key, len(key) + 1))
    return overrides


def fill(launch: LaunchContext, arguments: ScriptArguments, at: Location) -> list[Argument]:
    """Nothing: the defaults are those of transformers."""
    return []


def examine(launch: LaunchContext, arguments: ScriptArguments) -> list[LaunchTrouble]:
    """DeepSpeed without a launcher is refused; flags behind a file are keys of no argument."""
    return [*_without_launcher(launch, arguments), *_flags_behind_file(launch)]


def _without_launcher(launch: LaunchContext, arguments: ScriptArguments) -> list[LaunchTrouble]:
    named = arguments.get("deepspeed")
    alone = launch.launcher is LauncherName.PYTHON and launch.variable("WORLD_SIZE") is None
    if named is None or named.value is None or not alone:
        return []
    message = "LLaMA-Factory starts DeepSpeed under torchrun only: set FORCE_TORCHRUN=1"
    return [LaunchTrouble("deepspeed-without-launcher", message, named.location, True)]


def _flags_behind_file(launch: LaunchContext) -> list[LaunchTrouble]:
    words = launch.arguments.positionals
    if not words or not words[0].text.endswith(SUFFIXES):
        return []
    flag = next(iter(launch.arguments), None)
    if flag is None or not flag.known or is_on(launch.variable("ALLOW_EXTRA_ARGS")):
        return []
    name = flag.flag.lstrip("-")
    message = f"behind a file LLaMA-Factory takes {name}=VALUE, not {flag.flag}"
    return [LaunchTrouble("job-override-refused", message, flag.location, True)]
