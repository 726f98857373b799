"""``dsguard report``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from dsguard.cli import options
from dsguard.cli.output import emit, emit_utf8, fail, stdout_look, write_page
from dsguard.records.overview import overview
from dsguard.records.reading import RecordError
from dsguard.records.run import read_run
from dsguard.render.run_json import render_run_json
from dsguard.render.run_page import render_run_page
from dsguard.render.run_text import render_run
from dsguard.render.stream import ColorChoice


class ReportFormat(str, Enum):
    """What ``--output-format`` may say here."""

    TEXT = "text"
    JSON = "json"


def report(
    record: Annotated[
        Path,
        typer.Argument(
            metavar="RECORD",
            help="What guard(engine, record=...) wrote; the other ranks' files beside it count.",
        ),
    ],
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write one self-contained page with charts."),
    ] = None,
    output_format: Annotated[
        ReportFormat, typer.Option("--output-format", "-o", help="How to report.")
    ] = ReportFormat.TEXT,
    color: options.Color = ColorChoice.AUTO,
) -> None:
    """Show what a recorded run has done.

    Its windows, samples, gradient norm, tokens and findings.

    Example: dsguard report run.jsonl --html run.html
    """
    try:
        run = read_run(record)
    except RecordError as error:
        fail(str(error), error.help)
    told = overview(run)
    if html is not None:
        write_page(html, render_run_page(run, told), [record])
    if output_format is ReportFormat.JSON:
        emit_utf8(render_run_json(told))
    else:
        look = stdout_look(color)
        emit(render_run(run, told, color=look.color, unicode=look.unicode))
