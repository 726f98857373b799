"""From the words on the command line to the texts that are checked."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dsguard.checking import Settings, config_in_launch
from dsguard.launch.context import Command
from dsguard.model.report import Failure
from dsguard.model.source import Source
from dsguard.reading.errors import HjsonSyntaxError, ReadError
from dsguard.reading.hjson import parse
from dsguard.reading.load import load_bytes, load_path
from dsguard.schema.sniff import looks_like_deepspeed

_SUFFIXES = (".json", ".hjson")
_SKIPPED = {"node_modules", "__pycache__", "site-packages"}


@dataclass(frozen=True)
class Input:
    """A config to check; ``path`` is None for standard input.

    ``source`` is None where only the launch is checked, because the config it names is missing.
    """

    source: Source | None
    path: Path | None


def collect(
    names: Sequence[str], command: Command | None, settings: Settings
) -> tuple[list[Input], list[Failure]]:
    """The configs that the arguments name, or that the launch names where they name none."""
    if not names and command is not None:
        return _from_launch(command, settings)
    inputs: list[Input] = []
    failures: list[Failure] = []
    for name in names:
        try:
            inputs.extend(_from_name(name))
        except ReadError as error:
            failures.append(Failure(error.subject, error.message, error.help))
    return inputs, failures


def _from_name(name: str) -> Iterator[Input]:
    if name == "-":
        yield Input(load_bytes(sys.stdin.buffer.read(), "<stdin>"), None)
        return
    path = Path(name)
    if not path.is_dir():
        yield Input(load_path(path, name), path)
        return
    found = [Input(source, file) for file, source in _configs_below(path)]
    if not found:
        raise ReadError(
            name,
            "no DeepSpeed config in this folder",
            "dsguard looks for .json and .hjson files with DeepSpeed's keys",
        )
    yield from found


def _configs_below(folder: Path) -> Iterator[tuple[Path, Source]]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        if any(part.startswith(".") or part in _SKIPPED for part in inside[:-1]):
            continue
        if path.suffix not in _SUFFIXES or not path.is_file():
            continue
        try:
            source = load_path(path, str(path))
            if looks_like_deepspeed(parse(source).value):
                yield path, source
        except ReadError:
            continue
        except HjsonSyntaxError:
            # A broken file cannot be recognised by its keys, only by the name people give it.
            if _named_like_config(path.name):
                yield path, source


def _named_like_config(name: str) -> bool:
    return any(word in name.lower() for word in ("ds_config", "dsconfig", "deepspeed"))


def _from_launch(command: Command, settings: Settings) -> tuple[list[Input], list[Failure]]:
    named = config_in_launch(command, settings)
    if named is None:
        return [], [
            Failure(
                "launch command",
                "it names no DeepSpeed config, and no CONFIG was given",
                "name the config before --, such as: dsguard check ds_config.json -- deepspeed …",
            )
        ]
    name, path = named
    try:
        return [Input(load_path(path, name), path)], []
    except ReadError as error:
        if not path.exists():
            # The rule about a missing config says it at its place in the launch.
            return [Input(None, None)], []
        return [], [Failure(error.subject, error.message, error.help)]
