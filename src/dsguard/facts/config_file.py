"""Which config the launch reads, and whether it is the one that is checked."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from dsguard.frontends.detect import config_argument
from dsguard.model.fact import Fact, Known, Origin, OriginKind, Unknown
from dsguard.model.source import Location, Span

if TYPE_CHECKING:
    from dsguard.launch.context import Argument, LaunchContext
    from dsguard.model.tree import Document
    from dsguard.script.script import Script

_SUFFIXES = (".json", ".hjson", ".conf", ".config", ".yaml", ".yml")


class Whereabouts(str, Enum):
    """What is known of the file that the launch names."""

    PRESENT = "present"
    MISSING = "missing"
    OTHER_MACHINE = "an absolute path that is not on this machine"
    NOT_A_PATH = "not a path"


class NamedConfig(Struct, frozen=True):
    """The config that the launch names.

    ``path`` is where it would be, relative to the folder of the launch. ``is_checked`` says
    whether it is the checked file; None where that cannot be told.
    """

    argument: Argument
    whereabouts: Whereabouts
    path: Path
    is_checked: bool | None


def named_config(
    launch: LaunchContext | None, folder: Path, checked: Path | None
) -> NamedConfig | None:
    """The config that the launch names, None where it names none."""
    argument = config_argument(launch) if launch is not None else None
    if argument is None or argument.value is None:
        return None
    value = argument.value
    path = folder / value
    if not argument.known or not _looks_like_path(value):
        return NamedConfig(argument, Whereabouts.NOT_A_PATH, path, None)
    if is_file(path):
        same = None if checked is None else same_place(path, checked)
        return NamedConfig(argument, Whereabouts.PRESENT, path, same)
    if Path(value).is_absolute():
        # The launch may be for another machine, so only another file name is a sure difference.
        same = None if checked is None or path.name == checked.name else False
        return NamedConfig(argument, Whereabouts.OTHER_MACHINE, path, same)
    return NamedConfig(argument, Whereabouts.MISSING, path, None if checked is None else False)


def config_file_fact(
    named: NamedConfig | None,
    launch: LaunchContext | None,
    script: Script | None,
    checked: Path | None,
    document: Document | None = None,
) -> Fact:
    """The file that the run reads: named in the launch, or by its name in the script's text."""
    if document is not None and document.in_code:
        return Known(document.source.name, Origin(OriginKind.SCRIPT, document.locate("")))
    if launch is None and script is None:
        return Unknown("no launch command was given")
    inline = launch.inline_config if launch is not None else None
    if inline is not None and inline.source.is_file:
        return Known(inline.source.name, Origin(OriginKind.JOBFILE, inline.locate("")))
    if named is not None:
        argument = named.argument
        if not argument.known:
            return Unknown(f"{argument.value} is only known when it runs")
        text = (argument.value or "").lstrip().startswith("{")
        return Known("inline JSON" if text else argument.value, argument.origin())
    if inline is not None:
        return Known(inline.source.name, Origin(OriginKind.JOBFILE, inline.locate("")))
    at = script.source.text.find(checked.name) if script is not None and checked is not None else -1
    if script is not None and checked is not None and at != -1:
        place = Location(script.source, Span(at, at + len(checked.name)))
        return Known(checked.name, Origin(OriginKind.SCRIPT, place))
    return Unknown(
        "the launch names no config" if launch is not None else "no launch command was given"
    )


def unread_reason(named: NamedConfig | None, launch: LaunchContext | None, *, broken: bool) -> str:
    """Why nothing is known of what the config says; ``broken`` if there is one, but no object."""
    if broken:
        return "the config cannot be read"
    if named is None or not named.argument.known:
        return "the config is not known"
    for job in launch.jobs if launch is not None else ():
        if job.config is not None and job.config.is_shipped:
            return f"dsguard does not have the {named.argument.value} of {job.title}"
    reasons = {
        Whereabouts.MISSING: "does not exist",
        Whereabouts.OTHER_MACHINE: "is not on this machine",
    }
    return f"{named.argument.value} {reasons.get(named.whereabouts, 'is not read')}"


def _looks_like_path(value: str) -> bool:
    """Whether a value is meant as a file: no inline JSON, base64 or framework shorthand."""
    return not value.lstrip().startswith("{") and value.endswith(_SUFFIXES)


def same_place(one: Path, other: Path) -> bool:
    """Whether two paths lead to one place; a text that may be no possible path leads nowhere."""
    try:
        return os.path.realpath(one) == os.path.realpath(other)
    except (OSError, ValueError):
        return False


def is_file(path: Path) -> bool:
    """Whether there is a file, for any text that may be no possible path."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
