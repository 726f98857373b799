"""Which release of a package is installed beside dsguard, read without importing it.

:mod:`importlib.metadata` knows, and importing it takes longer than a whole check. So the folders
of ``sys.path`` are looked through here the way it does, and it is asked only where something
else than a ``.dist-info`` folder could have the answer.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.machinery import PathFinder

from packaging.version import InvalidVersion, Version

_INFO = (".dist-info", ".egg-info")


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
    except InvalidVersion:
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
            names = os.listdir(folder or ".")  # noqa: PTH208
        except NotADirectoryError:
            raise _UnusualError from None
        except (OSError, ValueError):
            continue
        for name in names:
            stem = name.rpartition(".")[0].partition("-")[0]
            if name.lower().endswith(_INFO) and _normalised(stem) == wanted:
                return _version(os.path.join(folder, name))  # noqa: PTH118
    return None


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name.lower())


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
