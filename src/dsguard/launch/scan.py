"""What a launcher's parser makes of its words: options by name, the script, the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from dsguard.launch.arguments import hidden_reason
from dsguard.model.fact import Fact, Known, Origin, OriginKind, Unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dsguard.launch.context import Argument, Command, LaunchTrouble, Word
    from dsguard.launch.options import OptionTable

_LARGEST = 10**9
"""A count above this is a slip of the keyboard; no arithmetic is done with it."""


class Scan(Struct, frozen=True):
    """What a launcher's parser makes of its words.

    ``arguments`` are the options as given, named by ``dest``; ``script`` the first operand and
    ``rest`` what belongs to it. ``hidden`` is the last word that may hold options only the shell
    knows, such as ``$ARGS``, and ``behind_hidden`` the number of options given after it;
    ``strange`` is an option that the table does not list.
    """

    arguments: tuple[Argument, ...]
    script: Word | None
    rest: tuple[Word, ...]
    troubles: tuple[LaunchTrouble, ...] = ()
    hidden: Word | None = None
    strange: Word | None = None
    behind_hidden: int = 0

    def last(self, dest: str) -> Argument | None:
        """The option that counts: the last one given."""
        return next((a for a in reversed(self.arguments) if a.name == dest), None)

    def has(self, dest: str) -> bool:
        """Whether an option is given at all."""
        return self.last(dest) is not None

    def text(self, dest: str) -> Fact | None:
        """The value of an option as written; None where it is not given."""
        argument = self.last(dest)
        behind = self.arguments[len(self.arguments) - self.behind_hidden :]
        if self.hidden is not None and not any(a.name == dest for a in behind):
            return Unknown(f"{self.hidden.text} may hold options, and only the shell knows it")
        if argument is None:
            return None
        if not argument.known:
            return Unknown(hidden_reason(argument))
        variable = argument.kind is OriginKind.LAUNCH and not argument.flag.startswith("-")
        kind = OriginKind.ENVIRONMENT if variable else argument.kind
        return Known(argument.value, argument.origin(kind))

    def integer(self, dest: str) -> Fact | None:
        """The value of an option as an integer; None where it is not given."""
        fact = self.text(dest)
        if not isinstance(fact, Known):
            return fact
        try:
            value = int(fact.value)
        except (TypeError, ValueError):
            return Unknown(f"{fact.origin.argument} is not an integer")
        return sensible(value, fact.origin)

    def after(self, arguments: Sequence[Argument]) -> Scan:
        """The same scan with other arguments before its own, which win over them."""
        return replace(self, arguments=(*arguments, *self.arguments))


def sensible(value: int, origin: Origin) -> Fact:
    """A count, unless it is too large to be meant."""
    if abs(value) > _LARGEST:
        return Unknown(f"{origin.argument} is larger than any cluster")
    return Known(value, origin)


class Scanner:
    """Collects what a scan finds."""

    def __init__(self, command: Command, words: Sequence[Word], table: OptionTable) -> None:
        self.command = command
        self.words = words
        self.table = table
        self.at = 0
        self.arguments: list[Argument] = []
        self.troubles: list[LaunchTrouble] = []
        self.hidden: Word | None = None
        self.before_hidden = 0
        self.strange: Word | None = None

    def hide(self, word: Word) -> None:
        """Note a word that may hold options: those before it may not be the last of their kind."""
        self.hidden = word
        self.before_hidden = len(self.arguments)

    def result(self, script: Word | None, rest: Sequence[Word]) -> Scan:
        """The scan, with the first operand and what follows it."""
        return Scan(
            tuple(self.arguments),
            script,
            tuple(rest),
            tuple(self.troubles),
            self.hidden,
            self.strange,
            len(self.arguments) - self.before_hidden,
        )

    def abbreviated(self, written: str) -> tuple[str, ...]:
        """The long names that a word is short for."""
        if not self.table.abbreviations:
            return ()
        return tuple(
            name
            for name, option in self.table.by_name.items()
            if name.startswith(written) and not option.removed
        )
