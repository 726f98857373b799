"""The ``dsguard`` program."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from dsguard import __version__
from dsguard.cli.command import Command, Group
from dsguard.cli.launch_words import split_off_launch

COMMANDS = (
    "check",
    "facts",
    "run",
    "diff",
    "report",
    "balance",
    "schema",
    "upgrade-check",
    "server",
    "baseline",
    "explain",
    "rules",
)
"""In the order in which the help lists them; each is a module of :mod:`dsguard.cli.commands`."""

_ASKED_FOR_COMPLETION = "_DSGUARD_COMPLETE"
_VERSION = ("--version", "-V")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dsguard {__version__}")
        raise typer.Exit


def dsguard(
    version: Annotated[
        bool,
        typer.Option(*_VERSION, help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Know what DeepSpeed will really run before you launch it."""


def app(commands: Sequence[str] = COMMANDS) -> typer.Typer:
    """The program with these commands; only their modules are imported."""
    program = typer.Typer(
        cls=Group,
        name="dsguard",
        help="Know what DeepSpeed will really run before you launch it.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
    )
    program.callback()(dsguard)
    for command in commands:
        name = command.replace("-", "_")
        module = import_module(f"dsguard.cli.commands.{name}")
        if hasattr(module, "app"):  # it has commands of its own
            program.add_typer(module.app)
        else:
            program.command(command, cls=Command)(getattr(module, name))
    return program


def main() -> None:
    """Run the program on ``sys.argv`` and exit with its code."""
    arguments, launch = split_off_launch(sys.argv[1:])
    wanted: Sequence[str] = COMMANDS
    if arguments and _ASKED_FOR_COMPLETION not in os.environ:
        if arguments[0] in COMMANDS:
            wanted = arguments[:1]
        elif arguments[0] in _VERSION:
            wanted = ()
    try:
        app(wanted)(args=arguments, obj=launch, prog_name="dsguard")
    except Exception as error:  # 1, which Python would exit with, says that an error was found
        from dsguard.checking import FAULT, crashed
        from dsguard.cli.output import INCOMPLETE, complain, no_answer

        if isinstance(error, OSError) and error.filename is None:
            no_answer(error)
        else:
            complain(f"dsguard {crashed(error)}", f"{FAULT}: please report it with the command")
        sys.exit(INCOMPLETE)
