"""Which files hold launches, by their names or their first line."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from dsguard.model.source import Source

Kind: TypeAlias = Literal["script", "makefile", "markdown"]

_SCRIPTS = (
    ".sh", ".bash", ".zsh", ".ksh", ".sbatch", ".slurm", ".job", ".pbs", ".qsub", ".lsf",
)  # fmt: skip
_MAKEFILES = ("makefile", "gnumakefile")


def kind_of(source: Source) -> Kind | None:
    """The kind of a file that :func:`~dsguard.launch.shell.find.find_launches` reads."""
    path = PurePath(source.name)
    suffix = path.suffix.lower()
    if suffix in _SCRIPTS:
        return "script"
    if suffix == ".mk" or path.name.lower() in _MAKEFILES:
        return "makefile"
    if suffix in (".md", ".markdown"):
        return "markdown"
    return "script" if names_shell(source.text) else None


def names_shell(text: str) -> bool:
    """Whether the first line of a text says that a shell reads it."""
    return text.startswith("#!") and re.match(r"#!.*\b(?:ba|da|k|z)?sh\b", text) is not None
