"""Which release of a package is installed beside dsguard, read without importing it."""

from __future__ import annotations

from importlib import metadata

from packaging.version import InvalidVersion, Version


def installed(package: str) -> Version | None:
    """The installed release without its local part (``+cu124``), None where there is none."""
    try:
        return Version(Version(metadata.version(package)).public)
    except (metadata.PackageNotFoundError, InvalidVersion):
        return None
