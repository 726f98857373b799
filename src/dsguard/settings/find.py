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
_MAY_BE_OURS = r"""^.*\btool\b(?:.*\bdsguard\b|["']?\s*[\]=])"""
"""A line that every text with a table ``tool.dsguard`` has."""
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
    if "dsguard" not in text or not re.search(_MAY_BE_OURS, text, re.MULTILINE):
        return False
    # Here, because few projects that have a pyproject.toml speak of dsguard in it.
    from dsguard.settings.places import tomllib, value_at

    try:
        value_at(tomllib.loads(text), SHARED_TABLE)
    except LookupError:
        return False
    except (ValueError, RecursionError):
        return re.search(r"^\s*\[+\s*tool\s*\.\s*dsguard\b", text, re.MULTILINE) is not None
    return True
