"""``dsguard check``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from dsguard.checking import report_of
from dsguard.cli import options
from dsguard.cli.inputs import collect
from dsguard.cli.launch_words import LaunchWords
from dsguard.cli.output import INCOMPLETE
from dsguard.cli.pair import Input
from dsguard.cli.reporting import complete_format, outputs_of, write_report
from dsguard.model.finding import Severity
from dsguard.model.report import Check, Report
from dsguard.render.stream import ColorChoice

_MANY = 50
"""From so many files a progress bar is shown on a terminal."""


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
            help="Configs, folders, training scripts, launch scripts, job files, or - for stdin.",
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
        list[str] | None,
        typer.Option(
            "--output-format",
            "-o",
            metavar="FORMAT[=FILE]",
            autocompletion=complete_format,
            help="text (default), concise, json, sarif or github. Repeatable, such as "
            "-o text -o sarif=dsguard.sarif.",
        ),
    ] = None,
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
    """Check configs together with the launch command behind --.

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
    outputs = outputs_of(output_format, output_file)
    settings = options.settings_of(
        target, world_size, hostfile, gpus_per_node, front_end, select, ignore
    )
    command = launch.command()
    inputs, failures = collect(configs or (), command, settings)
    checks = _check_all(inputs)
    report = report_of(checks, failures)
    write_report(report, outputs, verbose=verbose, quiet=quiet, color=color)
    raise typer.Exit(exit_code(report, fail_on))


def _check_all(inputs: Sequence[Input]) -> list[Check]:
    if len(inputs) < _MANY or not sys.stderr.isatty():
        return [item.check() for item in inputs]
    from rich.console import Console
    from rich.progress import track

    progress = Console(stderr=True)
    return [item.check() for item in track(inputs, "Checking", console=progress, transient=True)]


def exit_code(report: Report, fail_on: FailOn) -> int:
    """What the program exits with after this report."""
    if not report.complete:
        return INCOMPLETE
    if fail_on is FailOn.NEVER:
        return 0
    limit = Severity(fail_on.value).rank
    return int(any(finding.severity.rank >= limit for _, finding in report.findings))
