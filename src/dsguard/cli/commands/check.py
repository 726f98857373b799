"""``dsguard check``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from dsguard.cli import options
from dsguard.cli.inputs import collect
from dsguard.cli.launch_words import LaunchWords
from dsguard.cli.output import INCOMPLETE, emit, emit_json, stdout_look
from dsguard.cli.pair import Input
from dsguard.model.finding import Severity
from dsguard.model.report import Check, Report
from dsguard.render.concise import render_concise
from dsguard.render.json_report import render_json
from dsguard.render.stream import ColorChoice, Look
from dsguard.render.text import render_text

_MANY = 50
"""From so many files a progress bar is shown on a terminal."""


class OutputFormat(str, Enum):
    """What ``--output-format`` may say."""

    TEXT = "text"
    CONCISE = "concise"
    JSON = "json"


class FailOn(str, Enum):
    """What ``--fail-on`` may say."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    NEVER = "never"


def check(
    context: typer.Context,
    configs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CONFIG|DIR|-",
            help="Configs, folders, launch scripts, job files, or - for stdin.",
        ),
    ] = None,
    target: options.Target = None,
    world_size: options.WorldSize = None,
    hostfile: options.Hostfile = None,
    gpus_per_node: options.GpusPerNode = None,
    front_end: options.FrontEnd = options.FrontEndChoice.AUTO,
    select: options.Select = None,
    ignore: options.Ignore = None,
    fail_on: Annotated[
        FailOn, typer.Option(help="Exit with 1 from this severity upwards.")
    ] = FailOn.ERROR,
    output_format: Annotated[
        OutputFormat, typer.Option("--output-format", "-o", help="How to report.")
    ] = OutputFormat.TEXT,
    output_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report here, not to stdout.")
    ] = None,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            show_default=False,
            help="Also say which rules were skipped.",
        ),
    ] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only errors.")] = False,
    color: options.Color = ColorChoice.AUTO,
) -> None:
    """Check configs against the launch command that follows a lone --.

    Example: dsguard check ds_config.json -- torchrun --nproc_per_node=4 train.py
    --deepspeed_config ds_config.json

    Exit codes: 0 nothing found, 1 an error found, 2 wrong usage, 3 the answer is incomplete.
    """
    launch: LaunchWords = context.obj
    if not configs and not launch.given:
        raise typer.BadParameter(
            "name a config, a folder or - for standard input, or give a launch command after --",
            param_hint="CONFIG",
        )
    launch.refuse_empty()
    settings = options.settings_of(
        target, world_size, hostfile, gpus_per_node, front_end, select, ignore
    )
    command = launch.command()
    inputs, failures = collect(configs or (), command, settings)
    checks = _check_all(inputs)
    crashed = any(f.rule == "internal-error" for c in checks for f in c.findings)
    report = Report(tuple(checks), tuple(failures), crashed)
    _write(report, output_format, output_file, verbose, quiet, color)
    raise typer.Exit(exit_code(report, fail_on))


def _check_all(inputs: Sequence[Input]) -> list[Check]:
    if len(inputs) < _MANY or not sys.stderr.isatty():
        return [item.check() for item in inputs]
    from rich.console import Console
    from rich.progress import track

    progress = Console(stderr=True)
    return [item.check() for item in track(inputs, "Checking", console=progress, transient=True)]


def _write(
    report: Report,
    output_format: OutputFormat,
    output_file: Path | None,
    verbose: int,
    quiet: bool,
    color: ColorChoice,
) -> None:
    if output_file is None:
        text = _render(report, output_format, stdout_look(color), verbose, quiet)
        if output_format is OutputFormat.JSON:
            emit_json(text)
        else:
            emit(text)
        return
    look = Look(color=color is ColorChoice.ALWAYS, unicode=True, columns=None)
    text = _render(report, output_format, look, verbose, quiet)
    try:
        output_file.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise typer.BadParameter(
            f"cannot write {output_file}: {reason}", param_hint="--output-file"
        ) from None


def _render(
    report: Report, output_format: OutputFormat, look: Look, verbose: int, quiet: bool
) -> str:
    if output_format is OutputFormat.JSON:
        return render_json(report)
    if output_format is OutputFormat.CONCISE:
        return render_concise(report, unicode=look.unicode)
    return render_text(
        report,
        color=look.color,
        unicode=look.unicode,
        verbose=verbose,
        quiet=quiet,
        columns=look.columns,
    )


def exit_code(report: Report, fail_on: FailOn) -> int:
    """What the program exits with after this report."""
    if not report.complete:
        return INCOMPLETE
    if fail_on is FailOn.NEVER:
        return 0
    limit = Severity(fail_on.value).rank
    return int(any(finding.severity.rank >= limit for _, finding in report.findings))
