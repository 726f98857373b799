"""What stands after the first lone ``--``: the user's own launch command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dsguard.launch.context import Command


@dataclass(frozen=True)
class LaunchWords:
    """The words after ``--``; ``given`` tells an empty command from none."""

    words: tuple[str, ...]
    given: bool

    def command(self) -> Command | None:
        """The launch command, None where there was no ``--``."""
        return Command.of_words(self.words) if self.given else None


def split_off_launch(arguments: Sequence[str]) -> tuple[list[str], LaunchWords]:
    """Our own arguments, and the launch command behind the first ``--``.

    This happens before typer sees the list, so that no option of the launch is taken for ours.
    """
    words = list(arguments)
    if "--" not in words:
        return words, LaunchWords((), given=False)
    at = words.index("--")
    return words[:at], LaunchWords(tuple(words[at + 1 :]), given=True)
