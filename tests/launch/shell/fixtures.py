"""The launch scripts under ``fixtures/launch`` and what dsguard finds in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dsguard.frontends.detect import config_argument
from dsguard.launch.context import Argument, LaunchContext
from dsguard.launch.read import Surroundings, read_launch
from dsguard.launch.shell.find import FoundLaunch, find_launches
from dsguard.model.fact import Fact, Known, Unknown
from dsguard.model.source import Source
from tests.conftest import FIXTURES

FOLDER = FIXTURES / "launch"
SCRIPTS = sorted(path for path in FOLDER.iterdir() if not path.name.endswith(".expected.json"))

_BATCH = (
    "per_device_train_batch_size", "micro_batch_size", "train_micro_batch_size_per_gpu",
    "batch_size",
)  # fmt: skip
_ACCUMULATION = ("gradient_accumulation_steps", "grad_acc")


def expectation(script: Path) -> Path:
    """The file with the expected facts of a script."""
    return script.with_name(script.name.partition(".")[0] + ".expected.json")


def source_of(script: Path) -> Source:
    return Source(script.name, script.read_bytes().decode())


def found_in(script: Path) -> list[FoundLaunch]:
    return find_launches(source_of(script)).launches


def facts_of(found: FoundLaunch, folder: Path) -> dict[str, Any]:
    """The facts of a launch as they stand in an expectation."""
    launch = read_launch(found.command, Surroundings(folder))
    return {
        "command": found.command.line,
        "line": found.command.source.position(found.command.words[-1].span.start).line,
        "launcher": launch.launcher.value,
        "script": launch.script.text if launch.script is not None else None,
        "world_size": _plain(launch.world_size),
        "nodes": _plain(launch.nodes),
        "config": _value(config_argument(launch)),
        "batch": _value(launch.arguments.get(*_BATCH)),
        "accumulation": _value(_accumulation(launch)),
        "environment": _environment(launch),
        "troubles": [trouble.kind for trouble in launch.troubles],
        "folder": found.folder_hint,
    }


def _environment(launch: LaunchContext) -> dict[str, str | None]:
    known = {a.flag: a.value for a in launch.environment if a.known}
    return dict(sorted(known.items()))


def _accumulation(launch: LaunchContext) -> Argument | None:
    typed = launch.arguments.get(*_ACCUMULATION)
    return typed or launch.launcher_arguments.get(*_ACCUMULATION)


def _plain(fact: Fact) -> object:
    if isinstance(fact, Known):
        return fact.value
    assert isinstance(fact, Unknown)
    return {"unknown": fact.reason}


def _value(argument: Argument | None) -> object:
    if argument is None:
        return None
    return argument.value if argument.known else {"unknown": argument.value}
