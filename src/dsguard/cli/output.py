"""Writing to standard output."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

import typer

from dsguard.render.characters import visible
from dsguard.render.stream import ColorChoice, Look, look_of
from dsguard.writing import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

INCOMPLETE = 3
"""Exit code: nothing to check, unreadable input, a crashed rule, or nowhere to write."""


def complain(message: str, help: str = "") -> None:
    """Say on standard error why there is no answer, with a way out on a line of its own.

    Both may quote files and names, so what would move the cursor is shown as an escape.
    """
    way_out = f"\n  help: {visible(help, unicode=True)}" if help else ""
    typer.echo(f"Error: {visible(message, unicode=True)}{way_out}", err=True)


def wrong_usage(message: str, option: str) -> typer.BadParameter:
    """What to raise where the value of an option cannot be used; the program exits with 2."""
    return typer.BadParameter(visible(message, unicode=True), param_hint=option)


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
    complain(message, help)
    raise typer.Exit(INCOMPLETE)


def refuse_to_replace(path: Path, read: Iterable[Path], option: str) -> None:
    """Stop before a file that was read is written over, by whatever name.

    Pipes and devices, such as a terminal, can be read and written to.

    Raises:
        typer.BadParameter: it would be.
    """
    if not os.path.isfile(path):  # noqa: PTH113 - any text, possible path or not
        return
    for one in read:
        with suppress(OSError, ValueError):  # it is gone, or no path at all
            if path.samefile(one):
                message = f"{path} is what is read, and would be lost; name another file"
                raise wrong_usage(message, option)


def write_page(path: Path, page: str, read: Iterable[Path]) -> None:
    """Write what ``--html`` asks for, never over a file that was read."""
    refuse_to_replace(path, read, "--html")
    try:
        write_whole(path, page)
    except OSError as error:
        end_unwritten(path, error, "--html")
    typer.echo(f"wrote {visible(str(path), unicode=True)}", err=True)


def no_answer(error: OSError) -> None:
    """Say that an answer cannot be written, and write no more there.

    What is left in the buffer of standard output cannot be written at exit either.
    """
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    complain(f"cannot write to standard output: {error.strerror or type(error).__name__}")


def end_unwritten(path: Path, error: OSError, option: str) -> NoReturn:
    """End where a file cannot be written: by 2 where it has no place, by 3 where the disk fails.

    Raises:
        typer.BadParameter: the option names no place for a file.
        typer.Exit: the disk is full, read-only or broken.
    """
    message = f"cannot write {path}: {error.strerror or type(error).__name__}"
    if isinstance(error, _NO_PLACE):
        raise wrong_usage(message, option=option) from None
    complain(message)
    raise typer.Exit(INCOMPLETE) from None


_NO_PLACE = (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError)


@contextmanager
def _told() -> Iterator[None]:
    """Say that an answer cannot be written: exit code 1 would say that an error was found."""
    try:
        yield
    except OSError as error:
        no_answer(error)
        raise typer.Exit(INCOMPLETE) from None
