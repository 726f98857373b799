"""``python``: one process, unless it runs the module of a launcher.

Options as ``python --help-all`` of CPython 3.13 lists them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from dsguard.launch.call import Call
from dsguard.launch.context import LaunchContext, LauncherName, Word
from dsguard.launch.counts import Counts
from dsguard.launch.launchers import accelerate, deepspeed, torchrun
from dsguard.launch.options import getopt
from dsguard.launch.scan import Scan
from dsguard.launch.scan_getopt import scan_getopt
from dsguard.model.fact import Known, Origin, OriginKind, Unknown

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
    scan = scan_getopt(call.command, call.words, OPTIONS)
    module = scan.last("m")
    if module is not None:
        name = Word(module.value or "", module.value_location.span, module.known)
        scan = replace(scan, script=name)
    launcher = _launcher(scan, module is not None)
    if launcher is not None and scan.script is not None:
        return launcher(call.with_words(scan.script, scan.rest))
    return call.context(LauncherName.PYTHON, scan, _counts(call), module=module is not None)


def _launcher(scan: Scan, module: bool) -> Callable[[Call], LaunchContext] | None:
    if scan.script is None:
        return None
    name = scan.script.text
    return _MODULES.get(name) if module else _PROGRAMS.get(name.rpartition("/")[2])


def _counts(call: Call) -> Counts:
    """One process; or, with ``WORLD_SIZE=N`` before it, one of N that are started by hand."""
    variables = Scan(call.environment, None, ())
    by_hand = variables.integer("WORLD_SIZE")
    if by_hand is None:
        one = Known(1, Origin(OriginKind.LAUNCH, call.location, call.program.text))
        return Counts(one, one, one)
    apart = Unknown("the command starts one process; WORLD_SIZE counts those of all commands")
    return Counts(apart, apart, by_hand)
