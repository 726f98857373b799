"""Where a report goes, and in which format: ``--output-format`` and ``--output-file``."""

from __future__ import annotations

import difflib
import os
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from msgspec import Struct

from dsguard.cli.output import (
    emit,
    emit_utf8,
    end_unwritten,
    refuse_to_replace,
    stdout_look,
    wrong_usage,
)
from dsguard.facts.config_file import same_place
from dsguard.render.concise import render_concise
from dsguard.render.stream import ColorChoice, Look, look_of
from dsguard.writing import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dsguard.model.report import Report

_OPTION = "--output-format"
_OPTIONS = "--output-format/--output-file"


class OutputFormat(str, Enum):
    """The formats of a report."""

    TEXT = "text"
    CONCISE = "concise"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"


_FOR_PROGRAMS = (OutputFormat.JSON, OutputFormat.SARIF, OutputFormat.GITHUB)


class Output(Struct, frozen=True):
    """One copy of the report; ``path`` is None for standard output."""

    format: OutputFormat
    path: Path | None = None


def complete_format(incomplete: str) -> list[str]:
    """The formats that a shell offers."""
    return [it.value for it in OutputFormat if it.value.startswith(incomplete)]


def outputs_of(given: Sequence[str] | None, file: Path | None) -> list[Output]:
    """The outputs that the options ask for.

    Each value is a format, or ``FORMAT=FILE``; ``file`` is where the one without a file goes.

    Raises:
        typer.BadParameter: a format is unknown, or two outputs would go to one place.
    """
    outputs = [_output(text) for text in given or [OutputFormat.TEXT.value]]
    if file is not None:
        if all(output.path is not None for output in outputs):
            raise wrong_usage(f"every {_OPTION} names a file of its own", option="--output-file")
        outputs = [Output(it.format, file) if it.path is None else it for it in outputs]
    for number, output in enumerate(outputs):
        for other in outputs[:number]:
            if _same_place(output.path, other.path):
                where = f"to {output.path}" if output.path else "to standard output"
                raise wrong_usage(
                    f"{other.format.value} and {output.format.value} cannot both go {where}; "
                    f"write {_OPTION} {other.format.value}=FILE",
                    option=_OPTION,
                )
    return outputs


def refuse_to_write(outputs: Sequence[Output], contract: Path | None, read: Sequence[Path]) -> None:
    """Stop before anything is written where a file would be lost: one that was read, or a report.

    Raises:
        typer.BadParameter: an output or the contract would take the place of another file.
    """
    for output in outputs:
        if output.path is not None:
            refuse_to_replace(output.path, read, _OPTIONS)
    if contract is not None:
        refuse_to_replace(contract, read, "--write-contract")
        if any(_same_place(output.path, contract) for output in outputs):
            raise wrong_usage(f"a report goes to {contract} too", option="--write-contract")


def _same_place(one: Path | None, other: Path | None) -> bool:
    """Whether both are the same file, however they are spelt; None is standard output."""
    if one is None or other is None:
        return one is other
    try:
        return same_place(one, other) or one.samefile(other)
    except (OSError, ValueError):  # one is not there yet, or is no path at all
        return False


def _output(text: str) -> Output:
    name, equals, path = text.partition("=")
    try:
        form = OutputFormat(name)
    except ValueError:
        names = [it.value for it in OutputFormat]
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]}?" if close else "they are: " + ", ".join(names)
        raise wrong_usage(f"no format is called {name!r}; {hint}", option=_OPTION) from None
    if equals and not path:
        raise wrong_usage(f"{text!r} names no file", option=_OPTION)
    return Output(form, Path(path) if path not in ("", "-") else None)


def write_report(
    report: Report,
    outputs: Sequence[Output],
    *,
    verbose: int,
    quiet: bool,
    color: ColorChoice,
    aside: bool = False,
) -> None:
    """Write a report to all its outputs; files are written only when all have been rendered.

    They come before standard output, which may be closed or full. ``aside`` leaves standard output
    to something else: the report goes to standard error.

    Raises:
        typer.BadParameter: an option names no place for a file.
        typer.Exit: a file cannot be written.
    """
    ready: list[tuple[Output, str]] = []
    for output in outputs:
        if output.path is None and aside:
            look = look_of(sys.stderr, os.environ, color)
        elif output.path is None:
            look = stdout_look(color)
        else:
            look = Look(color=color is ColorChoice.ALWAYS, unicode=True, columns=None)
        ready.append((output, _render(report, output.format, look, verbose, quiet)))
    for output, text in sorted(ready, key=lambda it: it[0].path is None):
        if output.path is not None:
            try:
                write_whole(output.path, text)
            except OSError as error:
                end_unwritten(output.path, error, _OPTIONS)
        elif aside:
            typer.echo(text, err=True, nl=False)
        elif output.format in _FOR_PROGRAMS:
            emit_utf8(text)
        else:
            emit(text)


def _render(report: Report, form: OutputFormat, look: Look, verbose: int, quiet: bool) -> str:
    # Only what is used is imported: a cold start is most of a short run.
    if form is OutputFormat.JSON:
        from dsguard.render.json_report import render_json

        return render_json(report)
    if form is OutputFormat.SARIF:
        from dsguard.render.sarif import render_sarif

        return render_sarif(report)
    if form is OutputFormat.GITHUB:
        from dsguard.render.github import render_github

        return render_github(report)
    if form is OutputFormat.CONCISE:
        return render_concise(report, unicode=look.unicode)
    from dsguard.render.text import render_text

    return render_text(
        report,
        color=look.color,
        unicode=look.unicode,
        verbose=verbose,
        quiet=quiet,
        columns=look.columns,
    )
