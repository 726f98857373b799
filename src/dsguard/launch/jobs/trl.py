"""TRL: ``--config FILE.yaml`` gives defaults of the flags, so the command line wins.

Sources: ``trl/scripts/utils.py`` (``TrlParser``), ``trl/cli/commands/training.py`` and the
documentation of ``SFTConfig``; read, not run. The values pass through argparse, which converts
text. Keys that the script does not know go to ``accelerate launch`` where ``trl`` starts it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.jobs.job import Job
from dsguard.launch.jobs.keys import filled, is_on, key_arguments, members

if TYPE_CHECKING:
    from dsguard.launch.context import Argument, LaunchContext, LaunchTrouble, ScriptArguments
    from dsguard.model.source import Location
    from dsguard.model.tree import Document

NAME = "trl"
TITLE = "TRL"
FRONT_END = "transformers"
SHIPPED: frozenset[str] = frozenset()

_ONLY_TRL = frozenset(
    [
        "dataset_train_split",
        "dataset_test_split",
        "dataset_streaming",
        "dataset_mixer",
        "dataset_mixture",
        "use_peft",
        "lora_target_modules",
        "accelerate_config",
    ]
)

SCRIPTS = "trl.scripts."
"""The package of the scripts that ``trl`` starts."""

_LEARNING_RATES = {"sft": "2e-5"}
"""By script; those of the others changed, and are not known."""


def recognise(document: Document) -> bool:
    """Whether a model is trained and a key stands at the top that only TRL's scripts have."""
    keys = {member.key for member in members(document)}
    return "model_name_or_path" in keys and bool(keys & _ONLY_TRL)


def read(document: Document) -> Job:
    """The keys are the arguments; ``env`` sets variables for the script, and is none."""
    arguments = [a for a in key_arguments(document, {}) if a.flag != "env"]
    return Job(NAME, TITLE, FRONT_END, document, tuple(arguments))


def typed(launch: LaunchContext) -> list[Argument]:
    """Flags win over the file."""
    return list(launch.arguments)


def fill(launch: LaunchContext, arguments: ScriptArguments, at: Location) -> list[Argument]:
    """What TRL's own scripts add to TrainingArguments; bf16 is on unless fp16 is.

    Another script has the defaults of whatever class it parses.
    """
    script = launch.script
    if script is None or not launch.module or not script.text.startswith(SCRIPTS):
        return []
    added = []
    if arguments.get("bf16") is None:
        added.append(filled("bf16", _bf16(arguments.get("fp16")), TITLE, at))
    if arguments.get("learning_rate") is None:
        rate = _LEARNING_RATES.get(script.text.removeprefix(SCRIPTS))
        added.append(filled("learning_rate", rate, TITLE, at))
    return added


def examine(launch: LaunchContext, arguments: ScriptArguments) -> list[LaunchTrouble]:
    """Nothing."""
    return []


def _bf16(fp16: Argument | None) -> str | None:
    if fp16 is not None and not fp16.known:
        return None
    return "false" if is_on(fp16) else "true"
