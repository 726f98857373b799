"""Which commands start a training."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING

from dsguard.launch.launchers import (
    is_python,
    launcher_of_program,
    mpi,
    python,
    runs_launcher_module,
    srun,
)
from dsguard.launch.prefixes import program_name, strip_prefixes
from dsguard.launch.read import RUN_ONCE, launcher_inside, names_launcher
from dsguard.launch.scan_getopt import scan_getopt

if TYPE_CHECKING:
    from dsguard.launch.context import Command, Word
    from dsguard.launch.options import OptionTable

_TASKS: dict[str | None, OptionTable] = {"srun": srun.OPTIONS, "mpi": mpi.OPTIONS}
"""The launchers that start any command as a number of tasks."""
_TASK_LAUNCHERS = frozenset(("aprun", "flux", "ibrun", "jsrun", "prun"))
"""Programs that start the command behind their options as some number of tasks."""
_RUN_ANOTHER = RUN_ONCE | _TASK_LAUNCHERS
_SUBCOMMANDS = {
    "accelerate": ("launch",),
    "accelerate.commands.accelerate_cli": ("launch",),
    "axolotl": ("train",),
    "llamafactory-cli": ("train", "sft", "dpo", "rm"),
    "lmf": ("train", "sft", "dpo", "rm"),
    "swift": ("pt", "sft", "rlhf", "dpo", "orpo", "simpo"),
    "trl": ("sft", "dpo", "grpo", "kto", "reward", "rloo"),
}
"""The subcommands that start a training, of launchers that have others too."""
_TOOLS = ("pip", "venv", "ensurepip", "http", "json", "build", "pytest", "site")
_FLAG = re.compile(r"--?[\w-]+")
_NAME = re.compile(r"deepspeed|ds[_-]config", re.IGNORECASE)
_STRATEGY = re.compile(r"deepspeed(?:_stage_\w+)?$")
_CONFIG = re.compile(r"deepspeed|ds_|zero", re.IGNORECASE)
"""Arguments that hand a script its DeepSpeed config, or switch DeepSpeed on."""
_ONLY_TELL = ("-h", "--help", "-V", "--version")
_DEEPEST = 4


class Start(Enum):
    """What a command starts.

    ``launcher`` starts a training for sure. A Python script is a ``training`` where its
    arguments speak of DeepSpeed; ``tasks`` is one without that sign that runs as many tasks.
    """

    LAUNCHER = "launcher"
    TRAINING = "training"
    TASKS = "tasks"


def start_of(command: Command) -> Start | None:
    """What a command starts; None for anything that is not a training."""
    return _start(command, command.words, 0)


def _start(command: Command, words: tuple[Word, ...], depth: int) -> Start | None:
    stripped = strip_prefixes(command, words, names_launcher)
    if not stripped.words or stripped.unread or depth > _DEEPEST:
        return None
    program, rest = stripped.words[0], stripped.words[1:]
    if stripped.python is not None:
        return _python(command, stripped.words)
    name = program_name(program)
    launcher = launcher_of_program(name)
    if launcher in _TASKS:
        scan = scan_getopt(command, rest, _TASKS[launcher])
        if scan.script is None:
            return None
        inner = (scan.script, *scan.rest)
        found = _start(command, inner, depth + 1)
        return found or (Start.TASKS if _runs_script(command, inner) else None)
    called = not program.known and runs_launcher_module(rest)
    if is_python(name) or called:
        return _python(command, rest)
    if launcher is not None:
        return _launcher(name, rest)
    at = launcher_inside(stripped.words) if not program.known or name in _RUN_ANOTHER else 0
    if at:
        return _start(command, stripped.words[at:], depth + 1)
    script = name.endswith(".py") or (
        not program.known and any(word.text.endswith(".py") for word in rest)
    )
    return Start.TRAINING if script and _speaks_of_deepspeed(rest) else None


def _launcher(name: str, words: tuple[Word, ...]) -> Start | None:
    if not words or words[0].text in _ONLY_TELL:
        return None
    starting = _SUBCOMMANDS.get(name)
    if starting is not None and words[0].known and words[0].text not in starting:
        return None
    return Start.LAUNCHER


def _python(command: Command, words: tuple[Word, ...]) -> Start | None:
    scan, module = python.scan_python(command, words)
    if scan.script is None:
        return None
    if python.launcher_in(scan, module) is not None:
        return _launcher(program_name(scan.script), scan.rest)
    if module and _is_tool(scan.script):
        return None
    return Start.TRAINING if _speaks_of_deepspeed(scan.rest) else None


def _runs_script(command: Command, words: tuple[Word, ...]) -> bool:
    """Whether a task is a Python script, or a module that is no tool."""
    stripped = strip_prefixes(command, words, names_launcher)
    if not stripped.words or stripped.unread:
        return False
    program, rest = stripped.words[0], stripped.words[1:]
    if is_python(program_name(program)):
        scan, module = python.scan_python(command, rest)
        if scan.script is None:
            return False
        return not _is_tool(scan.script) if module else scan.script.text.endswith(".py")
    return program.text.endswith(".py")


def _is_tool(module: Word) -> bool:
    return module.text.partition(".")[0] in _TOOLS


def _speaks_of_deepspeed(words: tuple[Word, ...]) -> bool:
    behind_flag = False
    for word in words:
        name, equals, value = word.text.partition("=")
        if _FLAG.fullmatch(name) and _NAME.search(name):
            return True
        if not equals:
            value = word.text
        if (equals or behind_flag) and _STRATEGY.match(value):
            return True
        file = value.rpartition("/")[2]
        if file.endswith(".json") and _CONFIG.search(file):
            return True
        behind_flag = word.text.startswith("-")
    return False
