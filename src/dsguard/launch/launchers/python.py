"""``python``: one process, unless it runs the module of a launcher.

Options as ``python --help-all`` of CPython 3.13 lists them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dsguard.launch.context import Command, LaunchContext, LauncherName, Word
from dsguard.launch.counts import Counts
from dsguard.launch.launchers import accelerate, deepspeed, torchrun
from dsguard.launch.options import getopt
from dsguard.launch.scan import Scan
from dsguard.launch.scan_getopt import scan_getopt
from dsguard.model.fact import Known, Origin, OriginKind, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dsguard.launch.call import Call

PROGRAMS = re.compile(r"(python|pypy)w?[0-9.]*t?(\.exe)?")

OPTIONS = getopt(
    "-b -B -d -E -h|--help -i -I -O -P -q -R -s -S -u -v -V|--version -x -? "
    "-c: -m: -W: -X: --check-hash-based-pycs: --help-all --help-env --help-xoptions",
    last=("-c", "-m"),
)

_LAUNCHERS = (deepspeed, torchrun, accelerate)
_PROGRAMS = {name: launcher.read for launcher in _LAUNCHERS for name in launcher.PROGRAMS}
_MODULES = {name: launcher.read for launcher in _LAUNCHERS for name in launcher.MODULES}


def read(call: Call) -> LaunchContext:
    """Read the words after ``python``."""
    scan, module = scan_python(call.command, call.words)
    launcher = launcher_in(scan, module)
    if launcher is not None and scan.script is not None:
        return launcher(call.with_words(scan.script, scan.rest))
    return call.context(LauncherName.PYTHON, scan, one_process(call), module=module)


def scan_python(command: Command, words: Sequence[Word]) -> tuple[Scan, bool]:
    """The words after ``python``, and whether the script is a module."""
    scan = scan_getopt(command, words, OPTIONS)
    module = scan.last("m")
    if module is None:
        return scan, False
    name = Word(module.value or "", module.value_location.span, module.known)
    return replace(scan, script=name), True


def runs_launcher_module(words: Sequence[Word]) -> bool:
    """Whether words start with the ``-m`` of a launcher: only python is called like that."""
    return len(words) > 1 and words[0].text == "-m" and words[1].text in _MODULES


def launcher_in(scan: Scan, module: bool) -> Callable[[Call], LaunchContext] | None:
    """The reader of the launcher that python runs, None where it runs something else."""
    if scan.script is None:
        return None
    name = scan.script.text
    return _MODULES.get(name) if module else _PROGRAMS.get(name.rpartition("/")[2])


def one_process(call: Call) -> Counts:
    """One process; or, with ``WORLD_SIZE=N`` before it, one of N that are started by hand."""
    variables = Scan(call.environment, None, ())
    by_hand = variables.integer("WORLD_SIZE")
    if by_hand is None:
        one = Known(1, Origin(OriginKind.LAUNCH, call.location, call.program.text))
        return Counts(one, one, one)
    apart = Unknown("the command starts one process; WORLD_SIZE counts those of all commands")
    return Counts(apart, apart, by_hand)
