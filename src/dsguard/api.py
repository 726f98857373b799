"""dsguard from Python: the same checks as on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from dsguard.checking import Settings, check_source, read_command
from dsguard.facts.resolve import Options
from dsguard.facts.target import resolve_target
from dsguard.frontends.base import FrontEndName
from dsguard.launch.context import Command
from dsguard.model.report import Report
from dsguard.model.source import Source
from dsguard.reading.load import load_path

FrontEnd = Literal["auto", "plain", "transformers", "accelerate", "lightning"]


def check_text(
    text: str,
    *,
    launch: str | Sequence[str] | None = None,
    name: str = "<text>",
    world_size: int | None = None,
    front_end: FrontEnd = "auto",
    target: str | None = None,
    folder: Path | None = None,
) -> Report:
    """Check the text of a config.

    Args:
        text: JSON or HJSON, as it would stand in ds_config.json.
        launch: the launch command, as one line or as its words.
        name: what the config is called in the report.
        world_size: all processes of the job; wins over the launch.
        front_end: who hands the config to DeepSpeed; ``auto`` reads it from the launch.
        target: the DeepSpeed release to judge by; the installed one by default.
        folder: where the launch is run from; the current folder by default.

    Raises:
        dsguard.facts.target.TargetError: ``target`` is no release that dsguard can judge by.
        ValueError: ``launch`` is a line with an unbalanced quote, or ``front_end`` is unknown.
    """
    settings = _settings(world_size, front_end, target, folder)
    source = Source(name, text, is_file=False)
    return _report(source, launch, settings, None)


def check_file(
    path: str | Path,
    *,
    launch: str | Sequence[str] | None = None,
    world_size: int | None = None,
    front_end: FrontEnd = "auto",
    target: str | None = None,
    folder: Path | None = None,
) -> Report:
    """Check a config file; the arguments are those of :func:`check_text`.

    Raises:
        dsguard.reading.ReadError: the file cannot be read.
        dsguard.facts.target.TargetError: ``target`` is no release that dsguard can judge by.
        ValueError: ``launch`` is a line with an unbalanced quote, or ``front_end`` is unknown.
    """
    settings = _settings(world_size, front_end, target, folder)
    return _report(load_path(Path(path), str(path)), launch, settings, Path(path))


def _settings(
    world_size: int | None, front_end: FrontEnd, target: str | None, folder: Path | None
) -> Settings:
    name = None if front_end == "auto" else FrontEndName(front_end)
    return Settings(resolve_target(target), Options(world_size, name), folder=folder or Path.cwd())


def _report(
    source: Source, launch: str | Sequence[str] | None, settings: Settings, path: Path | None
) -> Report:
    command = None
    if isinstance(launch, str):
        command = Command.of_text(launch)
    elif launch is not None:
        command = Command.of_words(launch)
    read = read_command(command, settings) if command is not None else None
    return Report((check_source(source, read, settings, config_path=path),))
