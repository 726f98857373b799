"""Writing to standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer

from dsguard.render.stream import ColorChoice, Look, look_of
from dsguard.writing import write_whole

INCOMPLETE = 3
"""Exit code: nothing to check, unreadable input, a crashed rule, or nowhere to write."""


def stdout_look(color: ColorChoice) -> Look:
    """How standard output wants to be written."""
    with _told():
        return look_of(sys.stdout, os.environ, color)


def emit(text: str) -> None:
    """Write text made for standard output's own look."""
    with _told():
        sys.stdout.write(text)
        sys.stdout.flush()


def emit_utf8(text: str) -> None:
    """Write what programs read: UTF-8 whatever the terminal's encoding, as RFC 8259 asks."""
    with _told():
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8"))
        sys.stdout.buffer.flush()


def fail(message: str, help: str = "") -> NoReturn:
    """Say what cannot be done and the way out, and end the program."""
    way_out = f"\n  help: {help}" if help else ""
    typer.echo(f"Error: {message}{way_out}", err=True)
    raise typer.Exit(INCOMPLETE)


def write_page(path: Path, page: str, read: Iterable[Path]) -> None:
    """Write what ``--html`` asks for, never over a file that was read."""
    if path.exists() and any(path.samefile(one) for one in read):
        raise typer.BadParameter("that is what was read", param_hint="--html")
    try:
        write_whole(path, page)
    except OSError as error:
        fail(f"cannot write {path}: {error.strerror or error}")
    typer.echo(f"wrote {path}", err=True)


@contextmanager
def _told() -> Iterator[None]:
    """Say that an answer cannot be written: exit code 1 would say that an error was found."""
    if sys.stdout is None:  # closed by the caller, as `>&-` does
        typer.echo("Error: standard output is closed", err=True)
        raise typer.Exit(INCOMPLETE)
    try:
        yield
    except BrokenPipeError:  # the reader has seen enough; typer ends the program quietly
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        typer.echo(f"Error: cannot write to standard output: {reason}", err=True)
        # What is left in the buffer cannot be written at exit either.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        raise typer.Exit(INCOMPLETE) from None
