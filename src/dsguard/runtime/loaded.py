"""Which releases this process runs with, read from what it has imported already."""

from __future__ import annotations

import sys


def release_of(package: str) -> str | None:
    """``package.__version__``; None where this process has not imported it."""
    release = getattr(sys.modules.get(package), "__version__", None)
    return None if release is None else str(release)
