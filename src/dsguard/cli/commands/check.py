"""``dsguard check``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from dsguard.checking import Settings
from dsguard.cli import options
from dsguard.cli.jobs import gather
from dsguard.cli.launch_words import LaunchWords
from dsguard.cli.output import INCOMPLETE, emit_utf8, stdout_look, wrong_usage
from dsguard.cli.project import load_project, mistakes_told, policy_of
from dsguard.cli.read_files import files_read
from dsguard.cli.reporting import complete_format, outputs_of, refuse_to_write, write_report
from dsguard.model.finding import Finding, Severity
from dsguard.model.report import Check, Failure, Report
from dsguard.model.source import Source
from dsguard.pairing import Input, check_all
from dsguard.policy import make_report
from dsguard.render.concise import render_concise
from dsguard.render.stream import ColorChoice
from dsguard.render.wording import counted
from dsguard.settings.model import FailOn
from dsguard.settings.project import Project

if TYPE_CHECKING:
    from dsguard.cli.fixing import FixedConfig

_MANY = 50
"""From so many files a progress bar is shown on a terminal."""


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
    front_end: options.FrontEnd = None,
    jobs: options.Jobs = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(help="Exit with 1 from this severity upwards. Default: error."),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Warnings fail too (--fail-on warning), and a rule that is skipped because a "
            "fact is unknown makes the answer incomplete.",
        ),
    ] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Apply the fixes that keep what is trained.")
    ] = False,
    unsafe_fixes: Annotated[
        bool,
        typer.Option(
            "--unsafe-fixes", help="With --fix or --diff: those that change training, too."
        ),
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show what --fix would change; write nothing.")
    ] = False,
    baseline: options.BaselineFile = None,
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
    contract: options.WriteContract = None,
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
    no_env: options.NoEnv = False,
    isolated: options.Isolated = False,
    settings_file: options.SettingsFile = None,
    force_exclude: options.ForceExclude = False,
) -> None:
    """Check configs together with the launch command behind --.

    Example: dsguard check ds_config.json -- torchrun --nproc_per_node=4 train.py
    --deepspeed_config ds_config.json

    Exit codes: 0 nothing found, 1 an error found, 2 wrong usage, 3 the answer is incomplete.
    """
    launch: LaunchWords = context.obj

    def judged_by(project: Project) -> Settings:
        return options.settings_of(
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

    if unsafe_fixes and not (fix or diff):
        raise wrong_usage("needs --fix or --diff beside it", option="--unsafe-fixes")
    outputs = outputs_of(output_format, output_file)
    with mistakes_told():
        project = load_project(settings_file, isolated=isolated)
        policy = policy_of(project, judged_by(project), baseline)
        inputs, failures = gather(
            configs or (), launch, project, judged_by, jobs, force_exclude=force_exclude
        )
    read = list(files_read(configs or (), inputs, failures, project, policy.baseline))
    refuse_to_write(outputs, contract, read)
    checks = _check_all(inputs)
    fixed: list[FixedConfig] = []
    if fix or diff:
        # Imported where it is used: a cold start is most of what a check takes.
        from dsguard.cli.fixing import check_again, fix_inputs, write_all

        fixed, refused = fix_inputs(inputs, checks, policy, unsafe=unsafe_fixes)
        failures += refused
    if diff:
        raise typer.Exit(_show_diff(fixed, failures, color))
    if fix:
        fixed, refused = write_all(fixed)
        failures += refused
        checks = check_again(inputs, checks, fixed)
    if contract is not None and checks:
        from dsguard.cli.contracts import contract_of, write_contract

        if len(checks) > 1:
            raise wrong_usage(
                f"a contract is of one config and its launch, and {len(checks)} are checked",
                option="--write-contract",
            )
        write_contract(contract, contract_of(inputs[0], checks[0], 2))
    report = make_report(checks, policy, failures)
    report = replace(report, fixed=sum(one.count for one in fixed), strict=strict)
    text = _text_through(inputs, fixed) if fix else None
    if text is not None:
        emit_utf8(text)
    write_report(report, outputs, verbose=verbose, quiet=quiet, color=color, aside=text is not None)
    bar = fail_on or (FailOn.WARNING if strict else project.settings.fail_on) or FailOn.ERROR
    raise typer.Exit(exit_code(report, bar))


def _show_diff(
    fixed: Sequence[FixedConfig], failures: Sequence[Failure], color: ColorChoice
) -> int:
    """Print what fixing would change, and give the exit code."""
    look = stdout_look(color)
    for one in fixed:
        emit_utf8(one.diff(color=look.color, terminal=sys.stdout.isatty()))
    number = sum(one.count for one in fixed)
    typer.echo(f"Would fix {counted(number, 'problem')} in {counted(len(fixed), 'file')}", err=True)
    if failures:
        typer.echo(render_concise(Report((), tuple(failures)), unicode=False), err=True, nl=False)
        return INCOMPLETE
    return int(bool(fixed))


def _text_through(inputs: Sequence[Input], fixed: Sequence[FixedConfig]) -> str | None:
    """The text that came through standard input, with its fixes; None where nothing came."""
    for one in fixed:
        if one.path is None:
            return one.new.text
    for item in inputs:
        if item.editable and item.path is None and isinstance(item.config, Source):
            return item.config.text
    return None


def _check_all(inputs: Sequence[Input]) -> list[Check]:
    if len(inputs) < _MANY or not sys.stderr.isatty():
        return check_all(inputs)
    from rich.console import Console
    from rich.progress import track

    progress = Console(stderr=True)
    return check_all(track(inputs, "Checking", console=progress, transient=True))


def exit_code(report: Report, fail_on: FailOn) -> int:
    """What the program exits with after this report."""
    if not report.complete:
        return INCOMPLETE
    return int(any(fails(finding, fail_on) for _, finding in report.findings))


def fails(finding: Finding, fail_on: FailOn) -> bool:
    """Whether a finding is one that the program exits with 1 for."""
    if fail_on is FailOn.NEVER:
        return False
    return finding.severity.rank >= Severity(fail_on.value).rank
