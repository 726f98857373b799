"""Finding the settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dsguard.reading.errors import ReadError
from dsguard.reading.load import read_regular

if TYPE_CHECKING:
    from pathlib import Path

OWN_FILE = "dsguard.toml"
SHARED_FILE = "pyproject.toml"
_TOOL = re.compile(r"\btool\b")
_BEHIND = re.compile(r"\bdsguard\b")
_ALONE = re.compile(r"""\btool\b["']?\s*[\]=]""")
_HEADER = re.compile(r"\[+\s*tool\s*\.\s*dsguard\b")
SHARED_TABLE = ("tool", "dsguard")


def find_settings(folder: Path) -> Path | None:
    """The nearest file of settings, from a folder upwards.

    In one folder dsguard.toml comes before pyproject.toml, which counts where it holds
    ``[tool.dsguard]``.
    """
    for here in (folder, *folder.parents):
        own, shared = here / OWN_FILE, here / SHARED_FILE
        if own.is_file():
            return own
        if shared.is_file() and _speaks_of_dsguard(shared):
            return shared
    return None


def _speaks_of_dsguard(path: Path) -> bool:
    """Whether a pyproject.toml has settings of dsguard; a broken one is others' business."""
    try:
        text = read_regular(path, path.name).decode("utf-8", errors="replace")
    except ReadError:
        return False
    if "dsguard" not in text or not any(map(_may_be_ours, text.split("\n"))):
        return False
    # Here, because few projects that have a pyproject.toml speak of dsguard in it.
    from dsguard.settings.places import tomllib, value_at

    try:
        value_at(tomllib.loads(text), SHARED_TABLE)
    except LookupError:
        return False
    except (ValueError, RecursionError):
        return any(_HEADER.match(line.lstrip()) for line in text.split("\n"))
    return True


def _may_be_ours(line: str) -> bool:
    """Whether a line is one that every text with a table ``tool.dsguard`` has."""
    tool = _TOOL.search(line)
    if tool is None:
        return False
    return _BEHIND.search(line, tool.end()) is not None or _ALONE.search(line) is not None
