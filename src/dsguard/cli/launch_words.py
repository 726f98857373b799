"""What stands after the first lone ``--``: the user's own launch command."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dsguard.cli.output import wrong_usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dsguard.launch.context import Command


class LaunchWords(NamedTuple):
    """The words after ``--``; ``given`` tells an empty command from none."""

    words: tuple[str, ...]
    given: bool

    def command(self) -> Command | None:
        """The launch command, None where there was no ``--``.

        One word with white space is a whole command in quotes, as ``-- "$LAUNCH"`` gives it,
        unless there is a file of that name.
        """
        if not self.given:
            return None
        # Here, because every start asks for the words and not all of them for a command.
        from dsguard.launch.context import Command
        from dsguard.launch.words import ShellSyntaxError

        if len(self.words) == 1 and len(self.words[0].split()) > 1:
            with suppress(ShellSyntaxError):
                command = Command.of_text(self.words[0])
                # Unlike Path.is_file, this takes any text.
                if command.words and not os.path.isfile(self.words[0]):  # noqa: PTH113
                    return command
        return Command.of_words(self.words)

    def refuse_empty(self) -> None:
        """Stop where ``--`` is given and no command behind it, as by an empty shell variable.

        Raises:
            typer.BadParameter: the program exits with 2.
        """
        if self.given and not any(word.strip() for word in self.words[:1]):
            raise wrong_usage("no launch command follows --", option="--")


def split_off_launch(arguments: Sequence[str]) -> tuple[list[str], LaunchWords]:
    """Our own arguments, and the launch command behind the first ``--``.

    This happens before typer sees the list, so that no option of the launch is taken for ours.
    """
    words = list(arguments)
    if "--" not in words:
        return words, LaunchWords((), given=False)
    at = words.index("--")
    return words[:at], LaunchWords(tuple(words[at + 1 :]), given=True)
