"""From the words on the command line to the pairs that are checked."""

from __future__ import annotations

import errno
import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from dsguard.checking import FAULT, Settings, crashed, read_command
from dsguard.cli.launch_files import pair_of_job, pairs_of_script, refuse_unjudged
from dsguard.frontends.detect import config_argument
from dsguard.launch.context import Command, LaunchContext, LauncherName
from dsguard.launch.environ import NO_ENVIRON
from dsguard.launch.shell.kinds import kind_of
from dsguard.model.report import Failure
from dsguard.pairing import (
    STDIN,
    Input,
    pair_of_launch,
    pair_of_script,
    pair_with_script,
)
from dsguard.paths import Globs
from dsguard.reading.errors import HjsonSyntaxError, ReadError
from dsguard.reading.hjson import parse
from dsguard.reading.load import CLOSED, MAX_BYTES, load_bytes, load_path
from dsguard.schema.sniff import looks_like_deepspeed, named_like_config
from dsguard.script.load import SCRIPT_SUFFIXES, load_script, names_deepspeed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from dsguard.model.source import Source

_CONFIG_SUFFIXES = (".json", ".hjson")
_STARTERS = ("sh", "bash", "dash", "zsh", "ksh", "source", ".", "sbatch", "qsub")
_SKIPPED = {"node_modules", "__pycache__", "site-packages"}

_Place: TypeAlias = tuple[str, str]
"""Where a folder really is, and a name in it."""


def collect(
    names: Sequence[str],
    command: Command | None,
    settings: Settings,
    *,
    subject: str = "launch command",
    shown: Path | None = None,
    exclude: Globs | None = None,
) -> tuple[list[Input], list[Failure]]:
    """The pairs that the arguments make; a config that is not named comes from the launch.

    Args:
        names: files and folders, as seen from the working folder; a name that is given again,
            however it is spelt, counts once.
        command: the launch command, read as from ``settings.folder``.
        settings: how to check.
        subject: what the launch is called in failures.
        shown: ``settings.folder`` as seen by the user; None where that is the user's own.
        exclude: files to leave out where a folder is searched.
    """
    exclude = exclude or Globs((), settings.folder)
    launch = read_command(command, settings) if command is not None else None
    inputs: list[Input] = []
    failures: list[Failure] = []
    script = _started_script(launch, settings) if launch is not None else ""
    if script:
        help = f"check the script itself: dsguard check {shlex.quote(script)}"
        return [], [Failure(subject, f"starts {script}, a script of its own", help)]
    if not names and launch is not None:
        _sort_in(pair_of_launch(launch, settings, subject, shown=shown), inputs, failures)
    taken: set[_Place] = set()
    for name in _once(names, taken):
        try:
            for found in _from_name(name, launch, settings, exclude, taken):
                _sort_in(found, inputs, failures)
        except ReadError as error:
            failures.append(Failure(error.subject, error.message, error.help))
        except Exception as error:  # the other files are still checked
            help = f"{FAULT}: please report it with the file that shows it"
            failures.append(Failure(name, f"its reading {crashed(error)}", help))
    return inputs, failures


def _once(names: Sequence[str], taken: set[_Place]) -> list[str]:
    """The names without those that spell an earlier one otherwise; ``taken`` gets their places."""
    once = []
    for name in names:
        place = _place(name)
        if place not in taken:
            taken.add(place)
            once.append(name)
    return once


def _place(name: str) -> _Place:
    """What a name stands for, however it is spelt: a link is a name of its own."""
    plain = name
    while plain.endswith(("/", "/.")) and plain.strip("/."):
        plain = plain.removesuffix(".").rstrip("/")
    folder, base = os.path.split(plain)
    with suppress(OSError, ValueError):  # no possible path; reading it says so
        folder = "" if name in ("", "-") else os.path.realpath(folder)
    return folder, base


def _started_script(launch: LaunchContext, settings: Settings) -> str:
    """The script of launches that ``bash run.sh``, ``sbatch job.sh`` and the like start."""
    if launch.launcher is not LauncherName.UNKNOWN or config_argument(launch) is not None:
        return ""
    words = [word.text for word in launch.command.words]
    for word in words if words[:1] and words[0] in _STARTERS else words[:1]:
        with suppress(ReadError):
            if kind_of(load_path(settings.folder / word)):
                return word
    return ""


def _sort_in(found: Input | Failure, inputs: list[Input], failures: list[Failure]) -> None:
    if isinstance(found, Failure):
        failures.append(found)
        return
    if found.worth_checking:
        inputs.append(found)
    if found.gap is not None:
        failures.append(found.gap)


def _from_name(
    name: str,
    launch: LaunchContext | None,
    settings: Settings,
    exclude: Globs,
    taken: set[_Place],
) -> Iterator[Input | Failure]:
    if not name:
        raise ReadError("''", "is no file name", "is a variable of the shell empty?")
    if name == "-":
        yield Input(_standard_input(), None, launch, settings)
        return
    path = Path(name)
    if _is_folder(path):
        if not os.access(path, os.R_OK | os.X_OK):
            raise ReadError(name, *CLOSED)
        paths, closed = _files_below(path, exclude)
        places = {one: _place(str(one)) for one in paths}
        others = {one for one, place in places.items() if place not in taken}
        taken.update(places.values())
        found = [*_found_below(path, paths, others, launch, settings), *closed]
        if not found and len(others) == len(paths):
            raise ReadError(
                name,
                "no DeepSpeed config or training script in this folder",
                "dsguard looks for .json and .hjson files with DeepSpeed's keys, and for .py and "
                ".ipynb files that use DeepSpeed",
            )
        yield from found
        return
    if path.suffix in SCRIPT_SUFFIXES:
        yield pair_of_script(path, name, launch, settings)
        return
    source = load_path(path, name)
    # Nobody says in which shell a file is started, or on which machine.
    elsewhere = replace(settings, environ=NO_ENVIRON)
    if kind_of(source):
        if launch is not None:
            raise ReadError(
                name, "holds launch commands of its own", "leave out the command after --"
            )
        yield from pairs_of_script(source, path, elsewhere)
        return
    job = pair_of_job(source, path, elsewhere)
    if job is not None and launch is not None:
        raise ReadError(
            name,
            "is a job file, which the command that starts it names by itself",
            "check the command without it: dsguard check -- COMMAND",
        )
    if job is None and (launch is None or config_argument(launch) is None):
        refuse_unjudged(source, path)
    yield job or Input(source, path, launch, settings)


def _standard_input() -> Source:
    if sys.stdin is None:  # closed by the caller, as `<&-` does
        raise ReadError(STDIN, "is closed")
    source = load_bytes(sys.stdin.buffer.read(MAX_BYTES + 1), STDIN)
    if kind_of(source):
        raise ReadError(STDIN, "is a script, not a config", "pass the script as a file")
    return source


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False  # out of reach or no possible path; reading it says so


def _found_below(
    folder: Path,
    paths: Sequence[Path],
    others: AbstractSet[Path],
    launch: LaunchContext | None,
    settings: Settings,
) -> Iterator[Input | Failure]:
    """The training scripts in a folder with their configs, and the configs of nobody there.

    Only those of ``others``; the rest is checked already.
    """
    used: set[Path] = set()
    # A launch command starts one script, and it is read with every config.
    for path in paths if launch is None else ():
        found = _script_found(path, folder, settings) if path.suffix in SCRIPT_SUFFIXES else None
        if isinstance(found, Input) and found.path is not None:
            used.add(Path(os.path.realpath(found.path)))
        if found is not None and path in others:
            yield found
    for path in paths:
        is_config = path.suffix in _CONFIG_SUFFIXES and path in others
        if is_config and Path(os.path.realpath(path)) not in used:
            found = _config_found(path, folder, launch, settings)
            if found is not None:
                yield found


def _files_below(folder: Path, exclude: Globs) -> tuple[list[Path], list[Failure]]:
    """Configs and scripts by their names, and the folders that cannot be looked into, in order.

    Links to folders are not followed.

    All but hidden and installed things, however deep the folders are: ``rglob`` and ``os.walk`` of
    older Pythons call themselves.
    """
    suffixes = (*_CONFIG_SUFFIXES, *SCRIPT_SUFFIXES)
    folders, found = [folder], list[Path]()
    closed: list[Failure] = []
    while folders:
        here = folders.pop()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        found.append(Path(entry.path))
                    elif not entry.name.startswith(".") and entry.name not in _SKIPPED:
                        folders.append(Path(entry.path))
        except (FileNotFoundError, NotADirectoryError):
            continue  # it has gone meanwhile
        except OSError as error:
            if not exclude.match(str(here)):
                closed.append(Failure(str(here), *_why_closed(error)))
    files = sorted(
        path
        for path in found
        if path.suffix in suffixes and not exclude.match(str(path)) and not _is_folder(path)
    )
    return files, sorted(closed, key=lambda failure: failure.subject)


def _why_closed(error: OSError) -> tuple[str, str]:
    if isinstance(error, PermissionError):
        return CLOSED
    if error.errno == errno.ENAMETOOLONG:
        return "lies deeper than a path can say", "run dsguard in a folder nearer to it"
    return f"cannot be read: {error.strerror or error}", ""


def _refuse_to_leave(path: Path, folder: Path) -> None:
    """Stop at a link that leads out of the folder that is searched.

    Raises:
        ReadError: it does.
    """
    # Unlike Path.resolve, realpath takes a loop of links.
    inside = os.path.realpath(folder)
    # Unlike Path.is_symlink, this takes a folder out of reach.
    link = os.path.islink(path)  # noqa: PTH114
    if link and not Path(os.path.realpath(path)).is_relative_to(inside):
        help = "name it to have it checked"
        raise ReadError(str(path), "is a link that leads out of this folder", help)


def _config_found(
    path: Path, folder: Path, launch: LaunchContext | None, settings: Settings
) -> Input | Failure | None:
    """A file if it is a DeepSpeed config, or has the name of one and cannot be read."""
    try:
        _refuse_to_leave(path, folder)
        source = load_path(path, str(path))
        if looks_like_deepspeed(parse(source).value):
            return Input(source, path, launch, settings)
    except ReadError as error:
        if named_like_config(path.name):
            return Failure(error.subject, error.message, error.help)
    except HjsonSyntaxError:
        if named_like_config(path.name):
            return Input(source, path, launch, settings)
    return None


def _script_found(path: Path, folder: Path, settings: Settings) -> Input | Failure | None:
    """A file if it is a script that gives DeepSpeed a model or a config.

    What is missing beside it is no failure: nobody has said that it is run from there.
    """
    try:
        _refuse_to_leave(path, folder)
    except ReadError:
        return None
    if not names_deepspeed(path):
        return None
    name = str(path)
    script = load_script(path, name)
    if script is None:
        return None
    if script.unreadable is not None:
        return Failure(name, f"cannot be read as a script: {script.unreadable}")
    if not script.trains:
        return None
    try:
        return replace(pair_with_script(script, None, settings, None), gap=None)
    except ReadError as error:
        return Failure(error.subject, error.message, error.help)
