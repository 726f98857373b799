"""What the launchers of frameworks share: torchrun, its options taken from variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.context import Argument, LaunchContext, LauncherName, LaunchTrouble, Word
from dsguard.launch.counts import Counts
from dsguard.launch.launchers import python, torchrun
from dsguard.launch.scan import Scan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dsguard.launch.call import Call


def start_torchrun(
    call: Call, script: Word, words: Sequence[Word], options: Mapping[str, Argument | None]
) -> LaunchContext:
    """The module ``script`` under torchrun; ``options`` are variables by the option they set."""
    given = [a._replace(name=dest) for dest, a in options.items() if a is not None]
    troubles: list[LaunchTrouble] = []
    counts = torchrun.count(call, Scan(tuple(given), None, ()), troubles)
    scan = Scan(tuple(given), script, tuple(words))
    return call.context(LauncherName.TORCHRUN, scan, counts, module=True, troubles=troubles)


def start_python(call: Call, script: Word, words: Sequence[Word]) -> LaunchContext:
    """The module ``script`` in one process."""
    scan = Scan((), script, tuple(words))
    return call.context(LauncherName.PYTHON, scan, python.one_process(call), module=True)


def start_unknown(call: Call, script: Word, words: Sequence[Word], reason: str) -> LaunchContext:
    """The module ``script``, started in a way that only the run decides."""
    scan = Scan((), script, tuple(words))
    return call.context(LauncherName.UNKNOWN, scan, Counts.unknown(reason), module=True)


def start_nothing(call: Call, reason: str) -> LaunchContext:
    """A subcommand that trains nothing."""
    return call.context(LauncherName.UNKNOWN, Scan((), None, ()), Counts.unknown(reason))
