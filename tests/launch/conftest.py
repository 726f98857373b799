from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dsguard.launch.context import Command, LaunchContext
from dsguard.launch.read import Surroundings, read_launch

Launch = Callable[..., LaunchContext]


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    """Reads a command as typed in a shell, in a folder with the given files."""

    def read(
        text: str | list[str], files: dict[str, str] | None = None, **surroundings: object
    ) -> LaunchContext:
        for name, content in (files or {}).items():
            (tmp_path / name).write_text(content, encoding="utf-8")
        command = Command.of_text(text) if isinstance(text, str) else Command.of_words(text)
        return read_launch(command, Surroundings(tmp_path, **surroundings))  # type: ignore[arg-type]

    return read
