"""From the words on the command line to the pairs that are checked."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from dsguard.checking import Settings, read_command
from dsguard.cli.launch_files import pair_of_job, pairs_of_script
from dsguard.cli.pair import Input, pair_of_launch
from dsguard.launch.context import Command, LaunchContext
from dsguard.launch.shell.find import holds_launches
from dsguard.model.report import Failure
from dsguard.model.source import Source
from dsguard.reading.errors import HjsonSyntaxError, ReadError
from dsguard.reading.hjson import parse
from dsguard.reading.load import load_bytes, load_path
from dsguard.schema.sniff import looks_like_deepspeed

_CONFIG_SUFFIXES = (".json", ".hjson")
_SKIPPED = {"node_modules", "__pycache__", "site-packages"}


def collect(
    names: Sequence[str], command: Command | None, settings: Settings
) -> tuple[list[Input], list[Failure]]:
    """The pairs that the arguments make; a config that is not named comes from the launch."""
    launch = read_command(command, settings) if command is not None else None
    inputs: list[Input] = []
    failures: list[Failure] = []
    for name in names or [""]:
        try:
            for found in _from_name(name, launch, settings):
                if isinstance(found, Failure):
                    failures.append(found)
                    continue
                if found.worth_checking:
                    inputs.append(found)
                if found.gap is not None:
                    failures.append(found.gap)
        except ReadError as error:
            failures.append(Failure(error.subject, error.message, error.help))
    return inputs, failures


def _from_name(
    name: str, launch: LaunchContext | None, settings: Settings
) -> Iterator[Input | Failure]:
    if not name:
        if launch is not None:
            yield pair_of_launch(launch, settings, "launch command")
        return
    if name == "-":
        yield Input(load_bytes(sys.stdin.buffer.read(), "<stdin>"), None, launch, settings)
        return
    path = Path(name)
    if path.is_dir():
        found = [Input(source, file, launch, settings) for file, source in _configs_below(path)]
        if not found:
            raise ReadError(
                name,
                "no DeepSpeed config in this folder",
                "dsguard looks for .json and .hjson files with DeepSpeed's keys",
            )
        yield from found
        return
    source = load_path(path, name)
    if holds_launches(source):
        if launch is not None:
            raise ReadError(
                name, "holds launch commands of its own", "leave out the command after --"
            )
        yield from pairs_of_script(source, path, settings)
        return
    job = pair_of_job(source, path, settings)
    if job is not None and launch is not None:
        raise ReadError(
            name,
            "is a job file, which the command that starts it names by itself",
            "check the command without it: dsguard check -- COMMAND",
        )
    yield job or Input(source, path, launch, settings)


def _configs_below(folder: Path) -> Iterator[tuple[Path, Source]]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        if any(part.startswith(".") or part in _SKIPPED for part in inside[:-1]):
            continue
        if path.suffix not in _CONFIG_SUFFIXES or not path.is_file():
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
