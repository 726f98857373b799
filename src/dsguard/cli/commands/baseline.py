"""``dsguard baseline``: accept what is found now, so that only new findings count."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dsguard.baseline import DEFAULT_NAME, Baseline, entries_of, stale_entries
from dsguard.checking import Settings
from dsguard.cli import options
from dsguard.cli.command import Command, Group
from dsguard.cli.jobs import gather
from dsguard.cli.launch_words import LaunchWords
from dsguard.cli.output import (
    INCOMPLETE,
    complain,
    emit,
    refuse_to_replace,
    stdout_look,
    wrong_usage,
)
from dsguard.cli.project import (
    baseline_path,
    load_baseline,
    load_project,
    mistakes_told,
    policy_of,
    shown,
)
from dsguard.cli.read_files import files_read
from dsguard.model.report import Report
from dsguard.model.source import Source
from dsguard.pairing import check_all
from dsguard.policy import make_report
from dsguard.reading.errors import ReadError
from dsguard.reading.load import load_path
from dsguard.render.baseline import render_baseline
from dsguard.render.concise import render_concise
from dsguard.render.stream import ColorChoice
from dsguard.render.wording import counted
from dsguard.settings.project import Project
from dsguard.writing import write_whole

app = typer.Typer(
    cls=Group,
    name="baseline",
    help="Accept what is found now, so that only new findings count.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Configs = Annotated[
    list[str] | None,
    typer.Argument(metavar="CONFIG|DIR", help="What to check. Default: the jobs of the settings."),
]
File = Annotated[
    Path | None,
    typer.Option(
        "--baseline",
        metavar="FILE",
        help=f"The baseline. Default: that of the settings, else {DEFAULT_NAME}.",
    ),
]


@app.command("create", cls=Command)
def create(
    context: typer.Context,
    configs: Configs = None,
    baseline: File = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write over a baseline that is there.")
    ] = False,
    target: options.Target = None,
    world_size: options.WorldSize = None,
    hostfile: options.Hostfile = None,
    gpus_per_node: options.GpusPerNode = None,
    front_end: options.FrontEnd = None,
    jobs: options.Jobs = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    no_env: options.NoEnv = False,
    isolated: options.Isolated = False,
    settings_file: options.SettingsFile = None,
) -> None:
    """Write a baseline that accepts all findings of a check.

    Example: dsguard baseline create configs/
    """

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

    with mistakes_told():
        project = load_project(settings_file, isolated=isolated)
        path = _path(project, baseline)
        if path.exists() and not force:
            raise wrong_usage(
                f"{shown(path)} is there: prune takes entries out, --force writes it anew",
                option="--baseline",
            )
        _refuse_other(path)
        report = _checked(path, context, configs, project, judged_by, jobs)
        locked = options.locked_rules(project)
    entries = frozenset(entries_of(report.checks, path.parent, locked))
    _write(path, Baseline(entries, path.parent, Source(shown(path), "")))
    emit(f"{shown(path)} accepts {counted(len(entries), 'finding')}\n")


@app.command("prune", cls=Command)
def prune(
    context: typer.Context,
    configs: Configs = None,
    baseline: File = None,
    target: options.Target = None,
    world_size: options.WorldSize = None,
    hostfile: options.Hostfile = None,
    gpus_per_node: options.GpusPerNode = None,
    front_end: options.FrontEnd = None,
    jobs: options.Jobs = None,
    no_env: options.NoEnv = False,
    isolated: options.Isolated = False,
    settings_file: options.SettingsFile = None,
) -> None:
    """Take out of a baseline what is not found any more; nothing is added.

    Entries of files that are not checked stay, unless the file is gone.
    """

    def judged_by(project: Project) -> Settings:
        return options.settings_of(
            project, target, world_size, hostfile, gpus_per_node, front_end, no_env=no_env
        )

    with mistakes_told():
        project = load_project(settings_file, isolated=isolated)
        path = _path(project, baseline)
        old = load_baseline(project, path)
        assert old is not None
        report = _checked(path, context, configs, project, judged_by, jobs)
    stale = stale_entries(report.checks, old)
    if stale:
        _write(path, Baseline(old.entries - set(stale), old.folder, old.source))
    left = counted(len(old.entries) - len(stale), "entry", "entries")
    emit(f"{shown(path)}: {len(stale)} stale, {left} left\n")


@app.command("show", cls=Command)
def show(
    baseline: File = None,
    isolated: options.Isolated = False,
    settings_file: options.SettingsFile = None,
    color: options.Color = ColorChoice.AUTO,
) -> None:
    """List what a baseline accepts, by file."""
    with mistakes_told():
        project = load_project(settings_file, isolated=isolated)
        found = load_baseline(project, _path(project, baseline))
    assert found is not None
    look = stdout_look(color)
    emit(render_baseline(found, color=look.color, unicode=look.unicode))


def _path(project: Project, option: Path | None) -> Path:
    return baseline_path(project, option) or project.root / DEFAULT_NAME


def _refuse_other(path: Path) -> None:
    """Leave alone what nobody would take for a baseline, a damaged one included."""
    try:
        text = load_path(path, shown(path)).text
    except ReadError:
        if not path.exists():
            return
        text = "?"
    if text.strip() not in ("", "{}") and '"findings"' not in text:
        raise wrong_usage(
            f"{shown(path)} is no baseline, and would be lost; name another file",
            option="--baseline",
        )


def _checked(
    path: Path,
    context: typer.Context,
    configs: list[str] | None,
    project: Project,
    judged_by: options.JudgedBy,
    jobs: list[str] | None,
) -> Report:
    """The report of a check without a baseline.

    Raises:
        typer.BadParameter: the baseline would take the place of what is checked.
        typer.Exit: the answer is incomplete, and nothing is to be written.
    """
    launch: LaunchWords = context.obj
    policy = policy_of(project, judged_by(project), None, accepts=False)
    inputs, failures = gather(configs or (), launch, project, judged_by, jobs)
    refuse_to_replace(
        path, files_read(configs or (), inputs, failures, project), option="--baseline"
    )
    report = make_report(check_all(inputs), policy, failures)
    if not report.complete:
        typer.echo(render_concise(Report((), report.failures), unicode=False), err=True, nl=False)
        complain("the answer is incomplete, so nothing is written")
        raise typer.Exit(INCOMPLETE)
    return report


def _write(path: Path, baseline: Baseline) -> None:
    try:
        write_whole(path, baseline.text)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        complain(f"{shown(path)}: cannot be written: {reason}")
        raise typer.Exit(INCOMPLETE) from None
