"""What a launch command says, with every word at its place."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from dsguard.model.fact import Fact, Origin, OriginKind
from dsguard.model.source import Location, Source, Span


class Word(NamedTuple):
    """One word of a command.

    ``text`` is the word after the shell's unquoting. ``known`` is False where the shell
    would still have to expand something that dsguard cannot know, such as ``$NODES``;
    ``text`` then holds it as written.
    """

    text: str
    span: Span
    known: bool = True


@dataclass(frozen=True)
class Command:
    """One command: the words and the text they stand in.

    For words typed after ``--`` the source is the command line put together again
    (:func:`shlex.join`) and is not a file.
    """

    source: Source
    words: tuple[Word, ...]

    @classmethod
    def of_words(cls, words: Sequence[str], name: str = "<launch command>") -> Command:
        """A command from an argument list, as a shell has already split it."""
        text, placed = "", []
        for word in words:
            if text:
                text += " "
            quoted = shlex.quote(word)
            placed.append(Word(word, Span(len(text), len(text) + len(quoted))))
            text += quoted
        return cls(Source(name, text, is_file=False), tuple(placed))

    def locate(self, word: Word) -> Location:
        """Where a word stands."""
        return Location(self.source, word.span)

    @property
    def span(self) -> Span:
        """From the first word to the last."""
        if not self.words:
            return Span(0, 0)
        return Span(self.words[0].span.start, self.words[-1].span.end)


class LauncherName(str, Enum):
    """The launchers that dsguard reads; ``unknown`` for a script named without one."""

    DEEPSPEED = "deepspeed"
    TORCHRUN = "torchrun"
    ACCELERATE = "accelerate"
    PYTHON = "python"
    UNKNOWN = "unknown"


class Argument(NamedTuple):
    """One argument as given: ``--flag value``, ``--flag=value``, or a flag alone.

    ``name`` is the flag without leading dashes and with hyphens as underscores; ``flag`` is as
    typed (without ``=value``). ``value`` is None for a flag alone. ``known`` is False where
    the value holds something only the shell could expand. ``location`` covers flag and
    value, ``value_location`` the value alone (the flag where there is no value).
    """

    name: str
    flag: str
    value: str | None
    location: Location
    value_location: Location
    known: bool = True

    def origin(self, kind: OriginKind = OriginKind.LAUNCH) -> Origin:
        """This argument as the origin of a value."""
        return Origin(kind, self.location, self.flag)


class ScriptArguments:
    """The arguments that the training script gets, read without knowing its parser.

    A word that starts with a dash and is no number opens an argument; the next word is its
    value unless that opens an argument too. The last of several equal names counts, as in
    argparse. ``positionals`` are the words that belong to no flag or cannot be told apart.
    """

    def __init__(self, arguments: Sequence[Argument], positionals: Sequence[Word] = ()) -> None:
        self._arguments = tuple(arguments)
        self.positionals = tuple(positionals)

    def __iter__(self) -> Iterator[Argument]:
        return iter(self._arguments)

    def get(self, *names: str) -> Argument | None:
        """The last argument given under any of these names (underscore spelling), if any."""
        found = [a for a in self._arguments if a.name in names]
        return found[-1] if found else None


@dataclass(frozen=True)
class LaunchTrouble:
    """Something in the launch that the launcher refuses or reads otherwise than written.

    ``kind`` is a stable kebab-case word that a rule picks up, such as ``unknown-host``;
    ``refused`` says that the launcher stops with an error.
    """

    kind: str
    message: str
    location: Location
    refused: bool


@dataclass(frozen=True)
class LaunchContext:
    """One launch command, read.

    ``world_size`` counts all processes of the job; ``processes_per_node`` and ``nodes`` are
    its factors where the launcher has them. All are facts: known with the argument that says so, or
    unknown with the reason. ``script`` is the training script or, with ``module``, the
    module name after ``-m``.
    """

    command: Command
    launcher: LauncherName
    launcher_location: Location
    environment: tuple[Argument, ...]
    script: Word | None
    module: bool
    arguments: ScriptArguments
    world_size: Fact
    nodes: Fact
    processes_per_node: Fact
    launcher_arguments: ScriptArguments
    troubles: tuple[LaunchTrouble, ...] = ()

    def variable(self, name: str) -> Argument | None:
        """The leading ``NAME=value`` word of the command that counts (the last one)."""
        found = [a for a in self.environment if a.flag == name]
        return found[-1] if found else None
