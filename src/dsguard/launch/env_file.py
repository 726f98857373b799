"""The file of variables that ``deepspeed`` sends to the other machines.

It is ``.deepspeed_env`` in the folder of the launch, or what the variable ``DS_ENV_FILE``
names, and the one of that name in the home folder of whoever launches. It is read only where a
multi-node back end starts the processes: ``deepspeed/launcher/runner.py``, ``main``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.context import Argument, LaunchTrouble
from dsguard.model.source import Location, Span
from dsguard.reading.errors import ReadError
from dsguard.reading.load import load_path

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_NAME = ".deepspeed_env"


def env_file_troubles(
    folder: Path, home: Path | None, variable: Argument | None
) -> tuple[LaunchTrouble, ...]:
    """The first line that DeepSpeed cannot split at a ``=``; blank lines and comments count.

    ``home`` is the home folder of whoever launches, None where it is not looked at; ``variable``
    is the launch's own ``DS_ENV_FILE``, None where it sets none.
    """
    if variable is not None and (variable.value is None or not variable.known):
        return ()
    name = variable.value if variable is not None and variable.value else DEFAULT_NAME
    if home is not None:
        troubles = _troubles_of(home / name, str(home / name))
        if troubles:
            return troubles
    return _troubles_of(folder / name, name)


def _troubles_of(path: Path, name: str) -> tuple[LaunchTrouble, ...]:
    try:
        source, start = load_path(path, name), 0
    except ReadError:
        return ()
    for line in source.text.splitlines(keepends=True):
        if "=" not in line:
            shown = line.rstrip("\r\n")
            what = f"the line {shown!r} has no =" if shown.strip() else "a blank line has no ="
            message = f"{what}, and deepspeed stops when it reads {name}"
            at = Location(source, Span(start, start + len(shown)))
            return (LaunchTrouble("env-file-syntax", message, at, True),)
        start += len(line)
    return ()
