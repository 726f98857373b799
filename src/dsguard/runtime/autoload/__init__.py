"""A guard without touching the script: ``dsguard run --guard``.

The folder ``site`` is put on ``PYTHONPATH`` of the command. Each Python process of it loads the
``sitecustomize`` there at start, which waits for DeepSpeed to be imported and then puts a guard
on what ``deepspeed.initialize`` returns. No other process is touched.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOLDER = Path(__file__).parent / "site"


def environment_with_guard(environ: Mapping[str, str]) -> dict[str, str]:
    """The same environment, in which every engine gets a guard."""
    before = environ.get("PYTHONPATH")
    path = str(_FOLDER) if not before else f"{_FOLDER}{os.pathsep}{before}"
    return {**environ, "PYTHONPATH": path}
