"""The hostfile of the ``deepspeed`` launcher: one ``host slots=N`` a line.

Read as ``deepspeed/launcher/runner.py`` (``_parse_hostfile``) reads it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from dsguard.launch.context import LaunchTrouble, TroubleKind
from dsguard.model.source import Location, Source, Span
from dsguard.reading.errors import ReadError
from dsguard.reading.load import read_regular

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_HOSTFILE = "/job/hostfile"
"""Where ``deepspeed`` looks without ``--hostfile``."""

_ENTRY = re.compile(r"(\S+)\s+slots=(\d+)")
_MOST_SLOTS = 10**6


class Hostfile(Struct, frozen=True):
    """The slots of each host in the order of the file, and where the entries stand."""

    slots: dict[str, int]
    location: Location


class HostfileError(Exception):
    """A hostfile that DeepSpeed refuses."""

    def __init__(self, trouble: LaunchTrouble) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


class HostfileElsewhereError(Exception):
    """A hostfile under an absolute path that is not on this machine, but may be on another."""

    def __init__(self, message: str, trouble: LaunchTrouble) -> None:
        super().__init__(message)
        self.trouble = trouble


def read_hostfile(path: Path, name: str) -> Hostfile | None:
    """Read a hostfile; None where there is no such file.

    Raises:
        HostfileError: an entry is not ``host slots=N``, a host is named twice, there is no
            entry, or the file is not UTF-8 text.
    """
    try:
        data = read_regular(path, name)
    except ReadError:
        return None
    try:
        return parse_hostfile(Source(name, data.decode("utf-8")))
    except UnicodeDecodeError:
        source = Source(name, "")
        raise _error("hostfile-syntax", f"{name} is not UTF-8 text", source, Span(0, 0)) from None


def parse_hostfile(source: Source) -> Hostfile:
    """The hosts of a hostfile.

    Raises:
        HostfileError: DeepSpeed stops at this text.
    """
    slots: dict[str, int] = {}
    first = last = Span(0, 0)
    for line in re.finditer(r"[^\r\n]+", source.text):
        text = line[0].strip()
        if not text or text.startswith("#"):
            continue
        start = line.start() + line[0].index(text)
        span = Span(start, start + len(text))
        entry = _ENTRY.match(text)
        if entry is None:
            message = f"the entry {text!r} is not of the form `host slots=N`"
            raise _error("hostfile-syntax", message, source, span)
        host, count = entry[1], entry[2]
        if len(count) > len(str(_MOST_SLOTS)):
            raise _error("hostfile-syntax", f"no host has {count[:9]}… slots", source, span)
        if host in slots:
            message = f"the host {host} has more than one entry"
            raise _error("duplicate-host", message, source, span)
        first = first if slots else span
        last = span
        slots[host] = int(count)
    if not slots:
        raise _error("empty-hostfile", "the hostfile names no host", source, Span(0, 0))
    return Hostfile(slots, Location(source, Span(first.start, last.end)))


def _error(kind: TroubleKind, message: str, source: Source, span: Span) -> HostfileError:
    return HostfileError(LaunchTrouble(kind, message, Location(source, span), True))
