"""Writing to standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from dsguard.render.characters import visible
from dsguard.render.stream import ColorChoice, Look, look_of

INCOMPLETE = 3
"""Exit code: nothing to check, unreadable input, a crashed rule, or nowhere to write."""


def complain(message: str, help: str = "") -> None:
    """Say on standard error why there is no answer, with a way out on a line of its own.

    Both may quote files and names, so what would move the cursor is shown as an escape.
    """
    way_out = f"\n  help: {visible(help, unicode=True)}" if help else ""
    typer.echo(f"Error: {visible(message, unicode=True)}{way_out}", err=True)


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


@contextmanager
def _told() -> Iterator[None]:
    """Say that an answer cannot be written: exit code 1 would say that an error was found."""
    if sys.stdout is None:  # closed by the caller, as `>&-` does
        complain("standard output is closed")
        raise typer.Exit(INCOMPLETE)
    try:
        yield
    except BrokenPipeError:  # the reader has seen enough; typer ends the program quietly
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        complain(f"cannot write to standard output: {reason}")
        # What is left in the buffer cannot be written at exit either.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        raise typer.Exit(INCOMPLETE) from None
