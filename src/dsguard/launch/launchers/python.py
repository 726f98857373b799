"""``python``: one process, unless it runs the module of a launcher.

Options as ``python --help-all`` of CPython 3.13 lists them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from dsguard.launch.context import Command, LaunchContext, LauncherName, Word
from dsguard.launch.counts import Counts
from dsguard.launch.launchers import launcher_of_file, launcher_of_module, reader_of
from dsguard.launch.options import getopt
from dsguard.launch.scan import Scan
from dsguard.launch.scan_getopt import scan_getopt
from dsguard.model.fact import Known, Origin, OriginKind, Unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dsguard.launch.call import Call

OPTIONS = getopt(
    "-b -B -d -E -h|--help -i -I -O -P -q -R -s -S -u -v -V|--version -x -? "
    "-c: -m: -W: -X: --check-hash-based-pycs: --help-all --help-env --help-xoptions",
    last=("-c", "-m"),
)

_TOOLS = {
    name: (subcommand, getopt(table, last=("-m",)))
    for name, subcommand, table in (
        ("cProfile", "", "-o|--outfile: -s|--sort: -m:"),
        ("coverage", "run", "-a|--append --branch --concurrency: --context: --data-file: "
         "--include: -m|--module: --omit: -L|--pylib -p|--parallel-mode --rcfile: "
         "--save-signal: --source: --timid"),
        ("debugpy", "", "--listen: --connect: --wait-for-client --log-to: --log-to-stderr "
         "--adapter-access-token: --parent-session-pid: -m:"),
        ("ipdb", "", "-c: -m:"),
        ("kernprof", "", "-l|--line-by-line -b|--builtin -o|--outfile: -s|--setup: -v|--view "
         "-u|--unit: -z|--skip-zero -m:"),
        ("memray", "run", "-o|--output: -q|--quiet -f|--force --native --follow-fork "
         "--trace-python-allocators --aggregate --live --live-remote --live-port: "
         "--compress-on-exit --no-compress -m:"),
        ("pdb", "", "-c|--command: -m:"),
        ("profile", "", "-o|--outfile: -s|--sort: -m:"),
        ("pyinstrument", "", "-o|--outfile: -r|--renderer: -i|--interval: -t|--timeline --html "
         "--show: --hide: --show-all --use-timing-thread -m:"),
        ("scalene", "", "--cpu --gpu --memory --html --json --cli --web --outfile: "
         "--profile-all --reduced-profile"),
        ("torch.utils.bottleneck", "", ""),
    )
}  # fmt: skip
"""Modules that run a script or a module behind their options: ``python -m pdb train.py``."""


def read(call: Call) -> LaunchContext:
    """Read the words after ``python``."""
    scan, module = scan_python(call.command, call.words)
    launcher = launcher_in(scan, module)
    if launcher is not None and scan.script is not None:
        return reader_of(launcher)(call.with_words(scan.script, scan.rest))
    return call.context(LauncherName.PYTHON, scan, one_process(call), module=module)


def scan_python(command: Command, words: Sequence[Word]) -> tuple[Scan, bool]:
    """The words after ``python``, and whether the script is a module."""
    scan = scan_getopt(command, words, OPTIONS)
    module = scan.last("m")
    if module is None:
        return scan, False
    name = Word(module.value or "", module.value_location.span, module.known)
    inner = _behind_tool(command, name.text, scan.rest)
    if inner is not None:
        return inner
    return replace(scan, script=name), True


def _behind_tool(command: Command, tool: str, words: Sequence[Word]) -> tuple[Scan, bool] | None:
    """What a debugger or profiler runs, as python would; None where this is none."""
    if tool not in _TOOLS:
        return None
    subcommand, table = _TOOLS[tool]
    if subcommand:
        if not words or words[0].text != subcommand:
            return None
        words = words[1:]
    scan = scan_getopt(command, words, table)
    module = scan.last("m")
    if module is None:
        return (scan, False) if scan.script is not None else None
    name = Word(module.value or "", module.value_location.span, module.known)
    return replace(scan, script=name), True


def launcher_in(scan: Scan, module: bool) -> str | None:
    """The launcher that python runs, None where it runs something else."""
    if scan.script is None:
        return None
    name = scan.script.text
    return launcher_of_module(name) if module else launcher_of_file(name.rpartition("/")[2])


def one_process(call: Call) -> Counts:
    """One process; or, with ``WORLD_SIZE=N`` before it, one of N that are started by hand."""
    variables = Scan(call.environment, None, ())
    by_hand = variables.integer("WORLD_SIZE")
    if by_hand is None:
        one = Known(1, Origin(OriginKind.LAUNCH, call.location, call.program.text))
        return Counts(one, one, one)
    apart = Unknown("the command starts one process; WORLD_SIZE counts those of all commands")
    return Counts(apart, apart, by_hand)
