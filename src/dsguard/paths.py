"""Files as a project names them: from its root, with forward slashes."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from pathspec import GitIgnoreSpec

    from dsguard.model.finding import Finding
    from dsguard.model.report import Check


def file_of_finding(check: Check, finding: Finding) -> str | None:
    """The file that a finding is kept under; for one in a typed launch command, the config."""
    source = finding.location.source
    return source.name if source.is_file else check.config


def below(root: Path, name: str) -> str:
    """A file as seen from a folder, however the user named it.

    A file on another drive keeps its whole path.
    """
    try:
        relative = os.path.relpath(name, root)
    except ValueError:
        relative = os.path.abspath(name)  # noqa: PTH100
    return PurePath(relative).as_posix()


class Globs:
    """Patterns as in a .gitignore file, seen from a folder."""

    def __init__(self, patterns: Collection[str], root: Path) -> None:
        self._spec: GitIgnoreSpec | None = None
        if patterns:
            from pathspec import GitIgnoreSpec

            self._spec = GitIgnoreSpec.from_lines(patterns)
        self._root = root

    def match(self, name: str) -> bool:
        """Whether a pattern fits a file or a folder that it stands in."""
        if self._spec is None:
            return False
        relative = below(self._root, name)
        return not relative.startswith("../") and self._spec.match_file(relative)
