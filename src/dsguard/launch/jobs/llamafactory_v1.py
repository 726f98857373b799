"""LLaMA-Factory, version 1: its own trainer on Accelerate instead of the HF Trainer.

Sources: ``llamafactory/v1/config/training_args.py`` and ``arg_parser.py``; read, not run. The
DeepSpeed config is named by ``dist_config: {name: deepspeed, config_file: PATH}``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.context import Argument, LaunchContext, LaunchTrouble, ScriptArguments
from dsguard.launch.jobs import llamafactory
from dsguard.launch.jobs.job import ConfigForm, Job, JobConfig
from dsguard.launch.jobs.keys import filled, key_argument, key_arguments, members, missing, whole
from dsguard.model.fact import Fact, Known

if TYPE_CHECKING:
    from dsguard.model.source import Location
    from dsguard.model.tree import Document

NAME = "llamafactory-v1"
TITLE = "LLaMA-Factory v1"
FRONT_END = "accelerate"
SHIPPED: frozenset[str] = frozenset()

_DEFAULTS: dict[str, str | None] = {
    "micro_batch_size": "1",
    "max_grad_norm": "1.0",
    "learning_rate": "1e-4",
}

typed = llamafactory.typed


def recognise(document: Document) -> bool:
    """Whether ``dist_config`` is a plugin of version 1, or a batch is given its way."""
    value = document.value if isinstance(document.value, dict) else {}
    plugin = value.get("dist_config")
    if isinstance(plugin, dict) and "name" in plugin:
        return True
    return "global_batch_size" in value and "micro_batch_size" in value and "model" in value


def read(document: Document) -> Job:
    """The keys keep their names; the DeepSpeed config stands in ``dist_config``."""
    arguments = tuple(key_arguments(document, {}))
    return Job(NAME, TITLE, FRONT_END, document, arguments, _config(document))


def fill(launch: LaunchContext, arguments: ScriptArguments, at: Location) -> list[Argument]:
    """The defaults, and the accumulation that makes up the global batch."""
    added = [filled(name, value, TITLE, at) for name, value in missing(_DEFAULTS, arguments)]
    if arguments.get("gradient_accumulation_steps") is None:
        steps = _accumulation(ScriptArguments([*added, *arguments]), launch.world_size)
        added.append(filled("gradient_accumulation_steps", steps, TITLE, at))
    return added


def examine(launch: LaunchContext, arguments: ScriptArguments) -> list[LaunchTrouble]:
    """Flags behind a file are refused, as in version 0."""
    return llamafactory.examine(launch, arguments)


def _config(document: Document) -> JobConfig | None:
    plugin = document.get("/dist_config/name")
    if plugin is None or plugin.value != "deepspeed":
        return None
    for member in members(document, "/dist_config"):
        if member.key == "config_file":
            argument = key_argument(document, member, "deepspeed_config_file", "/dist_config")
            return JobConfig(ConfigForm.PATH, argument) if argument is not None else None
    return None


def _accumulation(arguments: ScriptArguments, world_size: Fact) -> str | None:
    """Global batch over micro batch times ranks; 1 without a global batch."""
    if arguments.get("global_batch_size") is None:
        return "1"
    total = whole(arguments.get("global_batch_size"))
    micro = whole(arguments.get("micro_batch_size"))
    if not isinstance(world_size, Known) or total is None or not micro or micro < 0:
        return None
    return str(total // (micro * world_size.value)) if world_size.value > 0 else None
