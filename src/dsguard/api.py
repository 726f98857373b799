"""dsguard from Python: the same checks as on the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dsguard.checking import Settings, check_source, read_command
from dsguard.facts.resolve import Options
from dsguard.facts.target import resolve_target
from dsguard.frontends.base import FrontEndName
from dsguard.launch.context import Command, LaunchContext
from dsguard.model.source import Source
from dsguard.pairing import pair_of_script
from dsguard.policy import Policy, make_report
from dsguard.reading.load import load_path
from dsguard.script.load import SCRIPT_SUFFIXES

if TYPE_CHECKING:
    from dsguard.model.report import Report

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

    >>> report = check_text('{"train_batch_size": 30}', world_size=4, target="0.19.8")
    >>> [finding.rule for finding in report.checks[0].findings]
    ['indivisible-batch-size']

    Args:
        text: JSON or HJSON, as it would stand in ds_config.json.
        launch: the launch command, as one line or as its words.
        name: what the config is called in the report.
        world_size: all processes of the job; wins over the launch.
        front_end: who hands the config to DeepSpeed; ``auto`` reads it from the launch.
        target: the DeepSpeed release to judge by; the installed or pinned one by default.
        folder: where the launch is run from; the current folder by default.

    Raises:
        dsguard.facts.target.TargetError: ``target`` is no release that dsguard can judge by.
        ValueError: ``launch`` is a line with an unbalanced quote, or ``front_end`` is unknown,
            or ``world_size`` is not a whole number above 0.
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
    """Check a config file or a training script; the arguments are those of :func:`check_text`.

    A script (``.py``, ``.ipynb``) is read, not run, and checked together with the config that it
    holds or names. Where that is named and not there, ``report.failures`` says so.

    >>> report = check_file("ds_config.json", launch="deepspeed --num_gpus 4 train.py")
    >>> report.complete
    True

    Raises:
        dsguard.reading.ReadError: the file cannot be read, or it is a script that shows nothing
            of DeepSpeed or is not the one that ``launch`` starts.
        dsguard.facts.target.TargetError: ``target`` is no release that dsguard can judge by.
        ValueError: ``launch`` is a line with an unbalanced quote, or ``front_end`` is unknown,
            or ``world_size`` is not a whole number above 0.
    """
    settings = _settings(world_size, front_end, target, folder)
    if Path(path).suffix in SCRIPT_SUFFIXES:
        pair = pair_of_script(Path(path), str(path), _launch(launch, settings), settings)
        gaps = (pair.gap,) if pair.gap is not None else ()
        return make_report((pair.check(),), Policy(), gaps)
    return _report(load_path(Path(path), str(path)), launch, settings, Path(path))


def check_dict(
    config: Mapping[str, Any],
    *,
    launch: str | Sequence[str] | None = None,
    name: str = "<dict>",
    world_size: int | None = None,
    front_end: FrontEnd = "auto",
    target: str | None = None,
    folder: Path | None = None,
) -> Report:
    """Check a config that a script has built; the other arguments are those of :func:`check_text`.

    Lines and columns are those of the config written as JSON, which
    ``finding.location.source.text`` holds; ``finding.location.pointer`` names the key.

    >>> config = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 4}}
    >>> (finding,) = check_dict(config, target="0.19.8").checks[0].findings
    >>> finding.location.pointer
    '/zero_optimization/stage'

    Raises:
        TypeError: it holds what a JSON file cannot, such as a torch dtype or a key that is no
            string.
        ValueError: it holds NaN, an infinity or itself; or as for :func:`check_text`.
        dsguard.facts.target.TargetError: ``target`` is no release that dsguard can judge by.
    """
    text = json.dumps(dict(config), indent=2, ensure_ascii=False, allow_nan=False)
    _refuse_other_keys(config, "the config")
    return check_text(
        text,
        launch=launch,
        name=name,
        world_size=world_size,
        front_end=front_end,
        target=target,
        folder=folder,
    )


def _refuse_other_keys(value: Any, where: str) -> None:
    """JSON would turn them into strings, and DeepSpeed gets them as they are."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} in {where} is no string")
            _refuse_other_keys(item, key)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_other_keys(item, where)


def _settings(
    world_size: int | None, front_end: FrontEnd, target: str | None, folder: Path | None
) -> Settings:
    if world_size is not None and (not isinstance(world_size, int) or world_size < 1):
        raise ValueError(f"world_size is a whole number above 0, not {world_size!r}")
    here = folder or Path.cwd()
    name = None if front_end == "auto" else FrontEndName(front_end)
    return Settings(resolve_target(target, here), Options(world_size, name), folder=here)


def _report(
    source: Source, launch: str | Sequence[str] | None, settings: Settings, path: Path | None
) -> Report:
    check = check_source(source, _launch(launch, settings), settings, config_path=path)
    return make_report((check,), Policy())


def _launch(launch: str | Sequence[str] | None, settings: Settings) -> LaunchContext | None:
    if launch is None:
        return None
    if isinstance(launch, str):
        return read_command(Command.of_text(launch), settings)
    return read_command(Command.of_words(launch), settings)
