"""Which release of a package is installed beside dsguard, read without importing it.

:mod:`importlib.metadata` knows, and importing it takes longer than a whole check. So the folders
of ``sys.path`` are looked through here the way it does, and it is asked only where something
else than a ``.dist-info`` folder could have the answer.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from importlib.machinery import PathFinder

from packaging.version import Version

_INFO = ("dist-info", "egg-info")


class _UnusualError(Exception):
    """Only ``importlib.metadata`` can tell."""


def installed(package: str) -> Version | None:
    """The installed release without its local part (``+cu124``), None where there is none."""
    try:
        found = _in_folders(package)
    except _UnusualError:
        found = _in_metadata(package)
    try:
        return Version(Version(found).public) if found is not None else None
    except ValueError:  # InvalidVersion, or more digits than Python converts
        return None


def _in_metadata(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _in_folders(package: str) -> str | None:
    """What the first ``.dist-info`` of a package says; None where there is none.

    Raises:
        _UnusualError: there is an archive, an egg or another finder to look into.
    """
    if any(hasattr(f, "find_distributions") for f in sys.meta_path if f is not PathFinder):
        raise _UnusualError
    wanted = _normalised(package)
    for folder in sys.path:
        if folder.lower().endswith(".egg"):
            raise _UnusualError
        try:
            here = folder or os.getcwd()  # noqa: PTH109
            infos = _infos(here, os.stat(here).st_mtime_ns)  # noqa: PTH116
        except NotADirectoryError:
            raise _UnusualError from None
        except (OSError, ValueError):
            continue
        if wanted in infos:
            return _version(os.path.join(here, infos[wanted]))  # noqa: PTH118
    return None


@lru_cache(maxsize=64)
def _infos(folder: str, changed: int) -> dict[str, str]:
    """The first of a folder for each package; one that has not changed is not listed again."""
    found: dict[str, str] = {}
    for name in os.listdir(folder):  # noqa: PTH208
        stem, dot, suffix = name.rpartition(".")
        if dot and suffix.lower() in _INFO:
            found.setdefault(_normalised(stem.partition("-")[0]), name)
    return found


def _normalised(name: str) -> str:
    """A name in lower case, with one underscore for any hyphens, dots and underscores."""
    name = name.lower().replace("-", "_").replace(".", "_")
    while "__" in name:
        name = name.replace("__", "_")
    return name


def _version(folder: str) -> str:
    """The version in the head of ``METADATA``."""
    try:
        with open(os.path.join(folder, "METADATA"), encoding="utf-8", errors="replace") as file:  # noqa: PTH118
            for line in file:
                key, colon, value = line.partition(":")
                if key.lower() == "version" and value.strip():
                    return value.strip()
                if not colon and not line[0].isspace():
                    break
    except OSError:
        pass
    raise _UnusualError
