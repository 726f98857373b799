"""Words as a shell hands them to a command, each at its place in the text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dsguard.model.source import Span


class Word(NamedTuple):
    """One word of a command.

    ``text`` is the word after the shell's unquoting and, in a script, its expansions. ``known``
    is False where the shell would still have to expand something that dsguard cannot know, such
    as ``$NODES``; ``text`` then holds it as written.
    """

    text: str
    span: Span
    known: bool = True


class ShellSyntaxError(ValueError):
    """A text that no shell could split into words. ``offset`` is where the trouble starts."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


def hidden_part(text: str) -> str:
    """What in an unknown word only the shell could know, in words for a message."""
    found = re.search(r"\$\{?([A-Za-z_]\w*)|(\$\(|`)", text)
    if found is None:
        return f"what the shell makes of {text}"
    return f"the shell variable {found[1]}" if found[1] else "the output of a command"
