"""Files that hold launches: scripts, Makefiles and Markdown, and the job files of frameworks.

Nobody says from which folder such a file is started. The folder of the user counts, or else the
first one, from the file's own upwards, in which the launch finds its config.
"""

from __future__ import annotations

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dsguard.checking import Settings, read_command, surroundings
from dsguard.facts.config_file import Whereabouts, named_config
from dsguard.frontends.detect import config_argument
from dsguard.model.fact import Unknown
from dsguard.model.report import Failure
from dsguard.pairing import Input, pair_of_launch, place_in_file
from dsguard.reading.errors import HjsonSyntaxError, ReadError, TextError, YamlUnavailableError
from dsguard.reading.hjson import parse
from dsguard.schema.sniff import looks_like_deepspeed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dsguard.launch.context import LaunchContext, LaunchTrouble, TroubleKind
    from dsguard.launch.shell.find import FoundLaunch
    from dsguard.model.source import Source

_MISSING: tuple[TroubleKind, ...] = (
    "job-file-missing",
    "accelerate-config-missing",
    "hostfile-missing",
)
"""Troubles that another folder may not have."""

_OF_HOSTS: frozenset[TroubleKind] = frozenset(
    (
        "hostfile-missing",
        "hostfile-elsewhere",
        "hostfile-syntax",
        "duplicate-host",
        "empty-hostfile",
        "unknown-host",
        "unknown-slot",
        "nothing-selected",
        "num-nodes-without-hostfile",
        "num-nodes-above-hosts",
        "gpus-above-slots",
        "visible-devices-ignored",
        "node-rank-out-of-range",
        "backend-needs-equal-slots",
    )
)
"""Troubles that another hostfile may not have."""

_KEYS = re.compile(
    r"""(\\?["'])(?:zero_optimization|train_micro_batch_size_per_gpu|train_batch_size)\1"""
)
"""A script that spells these in quotes writes a DeepSpeed config."""


def pairs_of_script(source: Source, path: Path, settings: Settings) -> Iterator[Input | Failure]:
    """The launches of a script, each with the config that it names.

    A launch without a config is left out, unless something is wrong with it.

    Raises:
        ReadError: there is no launch in it, or none that names a config.
    """
    from dsguard.launch.shell.find import find_launches

    found, whole = find_launches(source)
    if not found and whole:
        raise ReadError(
            source.name,
            "holds no launch command",
            "dsguard looks for deepspeed, torchrun, accelerate launch and the like",
        )
    writes_some_config = cache(lambda: _KEYS.search(source.text) is not None)
    pairs = [_pair_of_found(one, source, path, settings, writes_some_config) for one in found]
    pairs = [pair for pair in pairs if isinstance(pair, Failure) or pair.worth_checking]
    if not pairs and whole:
        raise ReadError(
            source.name,
            "its launch command names no DeepSpeed config"
            if len(found) == 1
            else f"none of its {len(found)} launch commands names a DeepSpeed config",
            "name the config first: dsguard check ds_config.json -- COMMAND",
        )
    yield from pairs
    if not whole:
        yield Failure(
            source.name,
            "makes more work than a launch script does, and is not read to its end",
            "check its launch by itself: dsguard check ds_config.json -- COMMAND",
        )


def pair_of_job(source: Source, path: Path, settings: Settings) -> Input | None:
    """A job file with the config that it names; None where it is none, but may be a config.

    Raises:
        ReadError: it is YAML that dsguard cannot read or does not know.
    """
    is_yaml = path.suffix.lower() in (".yaml", ".yml")
    if not is_yaml and _is_config(source):
        return None
    from dsguard.launch.jobs.alone import read_job_file
    from dsguard.launch.jobs.job import JobFileError

    try:
        if read_job_file(source, surroundings(settings)) is None:
            if not is_yaml or _is_config(source):
                return None
            raise ReadError(
                source.name,
                "is no job file that dsguard knows",
                "it knows those of Accelerate, LLaMA-Factory, axolotl, ms-swift, TRL and "
                "TrainingArguments",
            )
    except YamlUnavailableError:
        raise ReadError(source.name, "YAML cannot be read", "install dsguard[yaml]") from None
    except JobFileError as error:
        if not is_yaml:
            return None
        message = error.trouble.message.removeprefix(f"{source.name} ")
        raise ReadError(place_in_file(error.trouble.location), message) from None

    def read(here: Settings) -> LaunchContext:
        launch = read_job_file(source, surroundings(here))
        assert launch is not None
        return launch

    return _somewhere(read, path, settings, source.name)


def refuse_unjudged(source: Source, path: Path) -> None:
    """A file that nobody hands to DeepSpeed by name is judged where it may be a config.

    Raises:
        ReadError: it is neither written nor named like one, or it is YAML for a script to load,
            of which DeepSpeed's own reader would make something else.
    """
    if not _is_config(source):
        like_json = source.text.lstrip("\ufeff \t\r\n")[:1] in ("", "{", "[", "/", "#")
        if path.suffix or like_json:
            return
        raise ReadError(
            source.name,
            "is no launch script or config that dsguard knows",
            "check the config, or the script that starts the training",
        )
    if path.suffix.lower() not in (".yaml", ".yml"):
        return
    from dsguard.reading.yaml import parse_yaml

    try:
        differs = parse_yaml(source).value != parse(source).value
    except (TextError, YamlUnavailableError):
        return
    if differs:
        raise ReadError(
            source.name,
            "cannot be judged: it is YAML, of which DeepSpeed, reading HJSON, makes something else",
            "where a script loads it, check the same values as JSON; where DeepSpeed is given this "
            "file, check the command: dsguard check -- COMMAND",
        )


def _is_config(source: Source) -> bool:
    try:
        value = json.loads(source.text)  # most are JSON, which this reads twenty times as fast
    except (ValueError, RecursionError):
        pass
    else:
        return looks_like_deepspeed(value)
    try:
        return looks_like_deepspeed(parse(source).value)
    except HjsonSyntaxError:
        return source.name.lower().endswith(".json")


def _pair_of_found(
    one: FoundLaunch,
    source: Source,
    path: Path,
    settings: Settings,
    writes_some_config: Callable[[], bool],
) -> Input | Failure:
    def read(here: Settings) -> LaunchContext:
        return _without_hostfile(read_command(one.command, here), one, here)

    pair = _somewhere(read, path, settings, source.name, one.folder_hint or "")
    missing = _missing_file(pair)
    where = place_in_file(one.command.locate(one.command.words[0]))
    made = next((name for name in _files_read(pair) if one.writes(name)), None)
    if made is None and missing is not None:
        made = missing if one.writes_named(missing) or writes_some_config() else None
    if made is not None:
        message = f"this launch reads {made}, which the script writes before"
        return Failure(where, message, "check it once the script has written it")
    if missing is not None and one.folder_hint is None:
        message = f"this launch reads {missing} in a folder that is only known when it runs"
        return Failure(where, message, "run dsguard in that folder")
    return pair


def _files_read(pair: Input) -> Iterator[str]:
    """The config of a launch, and the files that may name it, as the launch names them."""
    launch = pair.launch
    if launch is None:
        return
    config = config_argument(launch)
    if config is not None and config.known and config.value is not None:
        yield config.value
    for document in [launch.launcher_config, *(job.document for job in launch.jobs)]:
        if document is not None and document.source.is_file:
            yield document.source.name


def _without_hostfile(launch: LaunchContext, one: FoundLaunch, settings: Settings) -> LaunchContext:
    """The launch, with its ranks left open where the script writes the hostfile before."""
    named = launch.launcher_arguments.get("hostfile", "deepspeed_hostfile")
    if named is None or named.value is None or settings.hostfile is not None:
        return launch
    if not named.known or not one.writes(named.value):
        return launch
    unknown = Unknown(f"the script writes {named.value} before")
    return replace(
        launch,
        world_size=unknown,
        nodes=unknown,
        processes_per_node=unknown,
        troubles=tuple(trouble for trouble in launch.troubles if trouble.kind not in _OF_HOSTS),
    )


def _missing_file(pair: Input) -> str | None:
    """The file that a launch names and that is not there."""
    launch = pair.launch
    if launch is None or pair.config is not None:
        return None
    named = named_config(launch, pair.settings.folder, None)
    if named is not None and named.whereabouts is Whereabouts.MISSING:
        return named.argument.value
    trouble = _missing_trouble(launch)
    return trouble.location.source.slice(trouble.location.span) if trouble is not None else None


def _missing_trouble(launch: LaunchContext) -> LaunchTrouble | None:
    return next((trouble for trouble in launch.troubles if trouble.kind in _MISSING), None)


def _somewhere(
    read: Callable[[Settings], LaunchContext],
    path: Path,
    settings: Settings,
    subject: str,
    below: str = "",
) -> Input:
    """The launch as read from the first folder in which it finds its config."""
    start = settings.folder
    best: Input | None = None
    for folder in dict.fromkeys([start, *(start / parent for parent in path.parents)]):
        here = replace(settings, folder=folder / below)
        shown = None if folder == start and not below else Path(os.path.relpath(here.folder, start))
        pair = pair_of_launch(read(here), here, subject, shown=shown)
        if pair.config is not None:
            return pair
        if best is None or (_missing_trouble_in(best) and not _missing_trouble_in(pair)):
            best = pair
    assert best is not None
    return best


def _missing_trouble_in(pair: Input) -> bool:
    return pair.launch is not None and _missing_trouble(pair.launch) is not None
