"""The launch commands in a file: a shell script, a job for Slurm, a Makefile, Markdown.

Nothing is executed. What bash could not read either ends the search; what it would only know
while running is an unknown word of the command.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from dsguard.launch.context import Argument, Command
from dsguard.launch.shell.batch import set_by_batch_system
from dsguard.launch.shell.kinds import Kind, kind_of
from dsguard.launch.shell.makefile import recipes
from dsguard.launch.shell.markdown import fences
from dsguard.launch.shell.parse import Parser
from dsguard.launch.shell.slurm import directives, job_state
from dsguard.launch.shell.starts import Start, start_of
from dsguard.launch.shell.state import State
from dsguard.launch.shell.text import Text
from dsguard.launch.shell.walk import walk
from dsguard.launch.shell.written import WrittenFiles
from dsguard.model.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_COMMENT_LINE = re.compile(r"^[ \t]*(#[^\r\n]*)", re.MULTILINE)
_LARGEST = 1 << 20
"""A longer text is no launch script."""


class FoundLaunch(Struct, frozen=True):
    """One launch command of a file.

    ``directives`` are the options in the file's ``#SBATCH`` lines. ``folder_hint`` is the folder
    that the file changes to before the launch, relative to the one it is started in (empty where
    it stays there); None where that is not known. ``written`` are the files that the file writes,
    and ``at`` is the place of the launch among its commands.
    """

    command: Command
    directives: tuple[Argument, ...]
    folder_hint: str | None
    written: WrittenFiles
    at: int

    def writes(self, path: str) -> bool:
        """Whether the file writes what the launch reads, before it."""
        return self.written.writes(path, self.folder_hint, self.at)

    def writes_named(self, path: str) -> bool:
        """Whether the file writes something of that name before, in whatever folder."""
        return self.written.writes_named(path, self.at)


class FoundLaunches(NamedTuple):
    """The launch commands of a file, in the order in which they would run.

    Without ``whole`` there may be more: the file is too long, or makes more work than any launch
    script does.
    """

    launches: list[FoundLaunch]
    whole: bool = True


def find_launches(source: Source) -> FoundLaunches:
    """The commands of a file that start a training, in the order in which they would run.

    Words stand at their place in ``source``; their text is what the shell makes of them. A plain
    ``python`` command counts only where no launcher is called and its arguments speak of
    DeepSpeed.
    """
    kind = kind_of(source)
    if kind is None:
        return FoundLaunches([])
    if len(source.text) > _LARGEST:
        return FoundLaunches([], whole=False)
    options = directives(source) if kind == "script" else ()
    found: list[tuple[Start, FoundLaunch]] = []
    walked = walk(_READERS[kind](source), source)
    written = WrittenFiles(walked.written)
    for at, met in enumerate(walked.met):
        command = Command(source, met.words, met.exported)
        start = start_of(command)
        if start is not None:
            found.append((start, FoundLaunch(command, options, met.folder, written, at)))
    starts = {start for start, _ in found}
    best = next((start for start in Start if start in starts), None)
    launches = [launch for start, launch in found if start is best]
    return FoundLaunches(launches, walked.whole)


def comments_of(source: Source) -> list[Span]:
    """The comments of a file of launches; of a Makefile those that fill their line.

    Markdown shows commands and has no comments of its own.
    """
    kind = kind_of(source)
    if kind == "makefile":
        return [Span(*match.span(1)) for match in _COMMENT_LINE.finditer(source.text)]
    if kind != "script" or len(source.text) > _LARGEST:
        return []
    parser = Parser(source.text)
    parser.whole()
    return sorted(parser.comments)


def _script(source: Source) -> Iterator[tuple[Text, State]]:
    text = Text.written(source.text, 0, len(source.text))
    state = job_state(directives(source))
    set_by_batch_system(state, text)
    yield text, state


def _makefile(source: Source) -> Iterator[tuple[Text, State]]:
    return ((recipe, State()) for recipe in recipes(source))


def _markdown(source: Source) -> Iterator[tuple[Text, State]]:
    return ((fence, State()) for fence in fences(source))


_READERS: dict[Kind, Callable[[Source], Iterator[tuple[Text, State]]]] = {
    "script": _script,
    "makefile": _makefile,
    "markdown": _markdown,
}
