"""``dsguard run``: check a launch, then become it."""

from __future__ import annotations

import errno
import functools
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn, TypeAlias

import typer
from msgspec import Struct
from msgspec.structs import replace

from dsguard.checking import Settings
from dsguard.cli import options
from dsguard.cli.commands.check import exit_code, fails
from dsguard.cli.contracts import contract_of
from dsguard.cli.inputs import collect
from dsguard.cli.launch_words import LaunchWords
from dsguard.cli.output import INCOMPLETE, complain, refuse_to_replace, wrong_usage
from dsguard.cli.project import load_project, mistakes_told, policy_of
from dsguard.cli.ranks import Seat, seat_of
from dsguard.cli.read_files import files_read
from dsguard.facts.contract import VARIABLE
from dsguard.model.fact import Origin, OriginKind
from dsguard.pairing import check_all
from dsguard.policy import Policy, make_report
from dsguard.reading.load import open_without_waiting
from dsguard.render.characters import visible
from dsguard.render.facts_table import render_facts
from dsguard.render.stream import ColorChoice, look_of
from dsguard.render.text import render_text
from dsguard.settings.model import FailOn
from dsguard.settings.project import Project
from dsguard.writing import write_whole

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_MOST_IN_VARIABLE = 1 << 16
"""Linux starts no program with a variable of 128 KiB (MAX_ARG_STRLEN), and all share 2 MiB."""

_MOST_OF_FIRST_LINE = 256
"""Linux reads so much of a script to find its interpreter."""

_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
"""Exit codes of a shell for a command that is not there, or may not be run."""


def run(
    context: typer.Context,
    config: Annotated[
        str | None,
        typer.Argument(
            metavar="CONFIG", help="A config, where the launch command does not name it."
        ),
    ] = None,
    target: options.Target = None,
    world_size: options.WorldSize = None,
    hostfile: options.Hostfile = None,
    gpus_per_node: options.GpusPerNode = None,
    front_end: options.FrontEnd = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(help="Do not start the command from this severity upwards. Default: error."),
    ] = None,
    fail_closed: Annotated[
        bool,
        typer.Option("--fail-closed", help="Do not start it either where the check is incomplete."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check, say what would be started, and stop.")
    ] = False,
    contract: options.WriteContract = None,
    guard: Annotated[
        bool,
        typer.Option(
            "--guard", help="Put a guard on every engine that deepspeed.initialize makes."
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only findings.")] = False,
    color: options.Color = ColorChoice.AUTO,
    baseline: options.BaselineFile = None,
    no_env: options.NoEnv = False,
    isolated: options.Isolated = False,
    settings_file: options.SettingsFile = None,
) -> None:
    """Check a launch, then start it in place of dsguard.

    Example: dsguard run -- deepspeed --num_gpus 4 train.py --deepspeed_config ds_config.json

    The command gets its words, standard input and output untouched; dsguard speaks on standard
    error. Exit codes: the command's own once it has started, 1 a finding stopped it, 2 wrong usage,
    3 the check is incomplete (--fail-closed), 126 or 127 the command cannot be started.
    """
    launch: LaunchWords = context.obj
    if not launch.given:
        raise wrong_usage("give the launch command after --", option="--")
    launch.refuse_empty()
    if config == "-":
        raise wrong_usage("standard input is the command's own", option="CONFIG")
    seat = seat_of(os.environ)
    words, variables = _split_assignments(launch.words)
    try:
        _refuse_lost_folder()
        with mistakes_told():
            project = load_project(settings_file, isolated=isolated)
            settings = options.settings_of(
                project,
                target,
                world_size,
                hostfile,
                gpus_per_node,
                front_end,
                select,
                ignore,
                no_env=no_env,
            )
            policy = policy_of(project, settings, baseline)
        limit = fail_on or project.settings.fail_on or FailOn.ERROR
        if world_size is None and seat is not None and not no_env:
            said = Origin(OriginKind.ENVIRONMENT, argument=seat.variable)
            ranks = replace(settings.options, world_size=seat.world_size, world_size_from=said)
            settings = replace(settings, options=ranks)
        judged = _judge(config, launch, project, settings, policy, limit, color, quiet)
    except (typer.BadParameter, typer.Exit):
        raise
    except _LostFolderError as error:
        _say(seat, f"dsguard: nothing is checked, because the working folder {error}\n")
        judged = _UNCHECKED
    except Exception:
        _say(seat, f"dsguard itself failed: {traceback.format_exc(limit=-1).strip()}\n")
        judged = _UNCHECKED
    _say(seat, judged.text)
    if contract is not None:
        refuse_to_replace(contract, judged.read, "--write-contract")
    if judged.code == 1:
        _say(seat, f"dsguard: not started because of the findings above: {_shown(words)}\n")
        _say_of_another(seat, f"not started because of {', '.join(judged.stopping)}")
        raise typer.Exit(1)
    if not judged.complete and fail_closed:
        _say(seat, "dsguard: not started, because the check is incomplete (--fail-closed)\n")
        _say_of_another(seat, "not started, because the check is incomplete (--fail-closed)")
        raise typer.Exit(INCOMPLETE)
    environ = _environment(
        judged.contract, contract, variables, seat, needed=fail_closed or dry_run
    )
    if guard:
        from dsguard.runtime.autoload import environment_with_guard

        environ = environment_with_guard(environ)
    if dry_run:
        _say(seat, f"dsguard: would start: {_shown(words)}\n")
        raise typer.Exit(0)
    _become(words, environ)


_Writer: TypeAlias = Callable[[int | None], str]
"""Writes the contract with this indent, or on one line."""


class _Judged(Struct, frozen=True):
    """What the check said: its text, exit code, whether it is whole.

    ``contract`` is None where not exactly one pair was checked. ``read`` are the files that it was
    made from, ``stopping`` the codes of the findings that stop the launch.
    """

    text: str
    code: int
    complete: bool
    contract: _Writer | None
    read: tuple[Path, ...] = ()
    stopping: tuple[str, ...] = ()


_UNCHECKED = _Judged("", 0, False, None)


class _LostFolderError(Exception):
    """The working folder is gone, or may not be looked into."""


def _refuse_lost_folder() -> None:
    try:
        os.stat(os.path.join(os.getcwd(), "."))  # noqa: PTH109, PTH116, PTH118
    except FileNotFoundError:
        raise _LostFolderError("is gone") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise _LostFolderError(f"cannot be looked into: {reason}") from None


def _judge(
    config: str | None,
    launch: LaunchWords,
    project: Project,
    settings: Settings,
    policy: Policy,
    fail_on: FailOn,
    color: ColorChoice,
    quiet: bool,
) -> _Judged:
    names = [config] if config is not None else []
    inputs, failures = collect(names, launch.command(), settings)
    checks = check_all(inputs)
    report = make_report(checks, policy, failures)
    look = look_of(sys.stderr, os.environ, color)
    text = ""
    if not quiet:
        for check in checks:
            text += render_facts(
                check, color=look.color, unicode=look.unicode, columns=look.columns
            )
            text += "\n"
    if report.findings or report.failures or not quiet:
        text += render_text(
            report, color=look.color, unicode=look.unicode, quiet=quiet, columns=look.columns
        )
    # A finding stops the launch even where another input could not be read.
    code = exit_code(replace(report, failures=(), crashed=False), fail_on)
    stored = None
    if len(checks) == 1:
        stored = functools.partial(contract_of, inputs[0], checks[0])
    read = tuple(files_read(names, inputs, failures, project, policy.baseline))
    stopping = tuple(dict.fromkeys(f.code for _, f in report.findings if fails(f, fail_on)))
    return _Judged(text, code, report.complete, stored, read, stopping)


def _environment(
    contract: _Writer | None,
    path: Path | None,
    variables: dict[str, str],
    seat: Seat | None,
    *,
    needed: bool,
) -> dict[str, str]:
    environ = {**os.environ, **variables}
    environ.pop(VARIABLE, None)  # one of another launch holds nobody to anything here
    if contract is None:
        return environ
    if path is not None and _kept(contract, path, seat, needed=needed):
        environ[VARIABLE] = str(path.absolute())
        return environ
    text = contract(None)
    if len(text.encode()) <= _MOST_IN_VARIABLE:
        environ[VARIABLE] = text
    else:
        _say(seat, "dsguard: the contract is too long for a variable: --write-contract FILE\n")
    return environ


def _kept(contract: _Writer, path: Path, seat: Seat | None, *, needed: bool) -> bool:
    """Whether the first rank could keep the contract in a file; the others trust that it did.

    They would start and wait for the first one, so it starts without the file, too, unless the
    file is ``needed``.
    """
    if seat is not None and seat.rank != 0:
        return True
    try:
        write_whole(path, contract(2) + "\n")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        shown = visible(str(path), unicode=True)
        end = "the command is not started" if needed else "the command starts without it"
        _say(seat, f"dsguard: cannot write the contract {shown}: {reason}; {end}\n")
        if needed:
            raise typer.Exit(INCOMPLETE) from None
        return False
    return True


def _split_assignments(words: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
    """The command, and the ``NAME=value`` words before it, which a shell would have set."""
    variables: dict[str, str] = {}
    for at, word in enumerate(words):
        if not _ASSIGNMENT.match(word):
            return list(words[at:]), variables
        name, _, value = word.partition("=")
        variables[name] = value
    raise wrong_usage("no command follows the variables", option="--")


def _say(seat: Seat | None, text: str) -> None:
    """Speak on standard error; of many ranks the first one speaks."""
    if text and (seat is None or seat.rank == 0):
        sys.stderr.write(text)
        sys.stderr.flush()


def _say_of_another(seat: Seat | None, text: str) -> None:
    """One line of a rank that is not the first one, so that it does not end without a word."""
    if seat is not None and seat.rank != 0:
        line = f"dsguard: rank {seat.rank} is {text}; rank 0 says the rest\n"
        _say(None, line)


def _shown(words: list[str]) -> str:
    """The command as one would type it, with nothing in it that moves the cursor."""
    return visible(shlex.join(words), unicode=True)


def _become(words: list[str], environ: dict[str, str]) -> NoReturn:
    """Replace this process by the command: its signals, exit code and streams are its own."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if os.name == "nt":  # there exec returns to the caller's shell at once
        sys.exit(subprocess.run(words, env=environ, check=False).returncode)
    # Python ignores these two, and an ignored signal stays ignored over exec.
    for name in ("SIGPIPE", "SIGXFSZ"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        try:
            os.execvpe(words[0], words, environ)
        except OSError as error:
            file = shutil.which(words[0], path=environ.get("PATH", os.defpath))
            if error.errno != errno.ENOEXEC or file is None or b"\0" in _first_line(file):
                raise
            # A script that names no interpreter is one for sh, as shells take it.
            os.execve("/bin/sh", ["sh", file, *words[1:]], environ)
    except FileNotFoundError:
        complain(*_not_found(words[0], environ))
        raise typer.Exit(_NOT_FOUND) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        complain(f"cannot start {words[0]}: {reason}")
        raise typer.Exit(_NOT_EXECUTABLE) from None


def _not_found(command: str, environ: dict[str, str]) -> tuple[str, str]:
    """Why a command cannot be found, and the way out: it, or what is to run it."""
    file = shutil.which(command, path=environ.get("PATH", os.defpath))
    if file is None:
        return f"there is no command {command}", ""
    line = _first_line(file)
    if not line.startswith(b"#!"):
        return f"{command} needs a loader or library that is not there", ""
    named = line[2:].strip(b" \t")
    help = "name one that is installed in the first line of the file"
    if named.endswith(b"\r"):
        help = "its lines end as on Windows: save it with the line ends of Unix"
    return f"{command} is for {os.fsdecode(named)!r}, which is not there", help


def _first_line(file: str) -> bytes:
    try:
        with open_without_waiting(Path(file)) as opened:
            return opened.read(_MOST_OF_FIRST_LINE).partition(b"\n")[0]
    except OSError:
        return b""
