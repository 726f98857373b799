"""From the words on the command line to the pairs that are checked."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dsguard.checking import Settings, check_source, config_in_launch, read_command, surroundings
from dsguard.launch.context import Command, LaunchContext
from dsguard.launch.jobs.alone import read_job_file
from dsguard.launch.jobs.load import JobFileError
from dsguard.launch.shell.find import find_launches, holds_launches
from dsguard.model.report import Check, Failure
from dsguard.model.source import Source
from dsguard.model.tree import Document
from dsguard.reading.errors import HjsonSyntaxError, ReadError
from dsguard.reading.hjson import parse
from dsguard.reading.load import load_bytes, load_path
from dsguard.reading.yaml import YamlUnavailableError
from dsguard.schema.sniff import looks_like_deepspeed

_CONFIG_SUFFIXES = (".json", ".hjson")
_JOB_SUFFIXES = (".yaml", ".yml")
_SKIPPED = {"node_modules", "__pycache__", "site-packages"}


@dataclass(frozen=True)
class Input:
    """One pair to check.

    ``config`` is None where only the launch is checked, because the config that it names is
    missing or no file; ``path`` is None for a config that is no file of its own.
    """

    config: Source | Document | None
    path: Path | None
    launch: LaunchContext | None
    settings: Settings

    def check(self) -> Check:
        """Run the check."""
        return check_source(self.config, self.launch, self.settings, config_path=self.path)


def collect(
    names: Sequence[str], command: Command | None, settings: Settings
) -> tuple[list[Input], list[Failure]]:
    """The pairs that the arguments make; a config that is not named comes from the launch."""
    launch = read_command(command, settings) if command is not None else None
    inputs: list[Input] = []
    failures: list[Failure] = []
    for name in names or [""]:
        try:
            if name:
                inputs.extend(_from_name(name, launch, settings))
            elif launch is not None:
                inputs.append(_from_launch(launch, settings, "launch command"))
        except ReadError as error:
            failures.append(Failure(error.subject, error.message, error.help))
    return inputs, failures


def _from_name(name: str, launch: LaunchContext | None, settings: Settings) -> Iterator[Input]:
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
        _refuse_second_launch(name, launch)
        yield from _from_script(source, path, settings)
        return
    job = _job(source, settings)
    if job is not None:
        _refuse_second_launch(name, launch)
        yield _from_launch(job, settings, name)
        return
    yield Input(source, path, launch, settings)


def _refuse_second_launch(name: str, launch: LaunchContext | None) -> None:
    if launch is not None:
        raise ReadError(name, "is a launch by itself", "leave out the command after --")


def _from_script(source: Source, path: Path, settings: Settings) -> Iterator[Input]:
    """The launches of a script that use DeepSpeed, as far as can be told."""
    found = find_launches(source)
    if not found:
        raise ReadError(
            source.name, "no launch command found", "dsguard knows deepspeed, torchrun and others"
        )
    inputs: list[Input] = []
    problem: ReadError | None = None
    for one in found:
        for folder in _folders(settings.folder, path, one.folder_hint):
            here = replace(settings, folder=folder)
            try:
                launch = read_command(one.command, here)
                item = _from_launch(launch, here, source.name)
            except ReadError as error:
                problem = problem or error
                continue
            if item.config is not None:
                break
        else:
            continue
        inputs.append(item)
    if not inputs and problem is not None:
        raise problem
    yield from inputs


def _folders(start: Path, script: Path, hint: str | None) -> list[Path]:
    """Where a script may be run from: the folder of the user, else its own."""
    below = hint or ""
    return [start / below, start / script.parent / below]


def _job(source: Source, settings: Settings) -> LaunchContext | None:
    suffix = Path(source.name).suffix.lower()
    try:
        if suffix in _JOB_SUFFIXES:
            job = read_job_file(source, surroundings(settings))
            if job is None:
                raise ReadError(
                    source.name,
                    "is no job file that dsguard knows",
                    "it reads those of Accelerate, LLaMA-Factory, axolotl, ms-swift, TRL and "
                    "TrainingArguments",
                )
            return job
        if suffix == ".json" and not _is_config(source):
            return read_job_file(source, surroundings(settings))
    except YamlUnavailableError:
        raise ReadError(source.name, "YAML cannot be read", "install dsguard[yaml]") from None
    except JobFileError as error:
        if suffix == ".json":
            return None
        line, column = error.trouble.location.source.position(error.trouble.location.span.start)
        raise ReadError(f"{source.name}:{line}:{column}", error.trouble.message) from None
    return None


def _is_config(source: Source) -> bool:
    try:
        return looks_like_deepspeed(parse(source).value)
    except HjsonSyntaxError:
        return True


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


def _from_launch(launch: LaunchContext, settings: Settings, subject: str) -> Input:
    """The pair of a launch and the config that it names."""
    if launch.inline_config is not None:
        return Input(launch.inline_config, None, launch, settings)
    named = config_in_launch(launch, settings)
    if named is None:
        if launch.refusal is not None or any(job.config for job in launch.jobs):
            return Input(None, None, launch, settings)
        raise ReadError(
            subject,
            "names no DeepSpeed config, and no CONFIG was given",
            "name the config first: dsguard check ds_config.json -- deepspeed ...",
        )
    name, path = named
    try:
        return Input(load_path(path, name), path, launch, settings)
    except ReadError:
        if path.exists():
            raise
        # The rule about a missing config says it at its place in the launch.
        return Input(None, None, launch, settings)
