"""``dsguard upgrade-check``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from packaging.version import Version

from dsguard.cli import options
from dsguard.cli.inputs import collect
from dsguard.cli.launch_words import LaunchWords
from dsguard.cli.output import INCOMPLETE, emit, stdout_look, wrong_usage
from dsguard.cli.project import load_project, mistakes_told
from dsguard.facts.target import TargetError, resolve_target
from dsguard.model.finding import Severity
from dsguard.model.report import Report, TargetOrigin
from dsguard.policy import Policy, make_report
from dsguard.render.stream import ColorChoice
from dsguard.render.text import render_text
from dsguard.render.upgrade import render_upgrade
from dsguard.schema.history import NEWEST_KNOWN
from dsguard.upgrading import compare

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dsguard.model.report import Failure
    from dsguard.render.stream import Look


def upgrade_check(
    context: typer.Context,
    config: Annotated[
        str | None,
        typer.Argument(metavar="CONFIG", help="A config, a launch script or a job file."),
    ] = None,
    old: Annotated[
        str | None,
        typer.Option("--from", metavar="VERSION", help="Default: the installed or pinned release."),
    ] = None,
    new: Annotated[
        str | None, typer.Option("--to", metavar="VERSION", help="Default: the newest known.")
    ] = None,
    world_size: options.WorldSize = None,
    hostfile: options.Hostfile = None,
    gpus_per_node: options.GpusPerNode = None,
    front_end: options.FrontEnd = None,
    no_env: options.NoEnv = False,
    isolated: options.Isolated = False,
    settings_file: options.SettingsFile = None,
    color: options.Color = ColorChoice.AUTO,
) -> None:
    """Show what changes between two releases of DeepSpeed.

    Example: dsguard upgrade-check ds_config.json --from 0.16.4 --to 0.19.8

    Exits with 1 when an error appears with the new release.
    """
    launch: LaunchWords = context.obj
    if config is None and not launch.given:
        raise wrong_usage("name a config, or give a launch command after --", option="CONFIG")
    launch.refuse_empty()
    releases = (
        _release(old, "--from", look_here=not no_env),
        _release(new, "--to", newest=True),
    )
    names = [config] if config is not None else ()
    with mistakes_told():
        settings = options.settings_of(
            load_project(settings_file, isolated=isolated),
            str(releases[1]),
            world_size,
            hostfile,
            gpus_per_node,
            front_end,
            no_env=no_env,
        )
    inputs, failures = collect(names, launch.command(), settings)
    look = stdout_look(color)
    if failures:
        _tell_failures(failures, look)
        raise typer.Exit(INCOMPLETE)
    worse = False
    for item in inputs:
        upgrade = compare(item.config, item.launch, item.settings, *releases, config_path=item.path)
        emit(render_upgrade(upgrade, color=look.color, unicode=look.unicode))
        worse |= any(finding.severity is Severity.ERROR for finding in upgrade.appears)
        # Releases of which not all is told cannot be compared.
        failures += make_report((upgrade.old, upgrade.new), Policy()).failures
    if failures:
        _tell_failures(failures, look)
        raise typer.Exit(INCOMPLETE)
    raise typer.Exit(int(worse))


def _tell_failures(failures: Iterable[Failure], look: Look) -> None:
    report = Report((), tuple(failures))
    emit(render_text(report, color=look.color, unicode=look.unicode, columns=look.columns))


def _release(
    text: str | None, option: str, *, newest: bool = False, look_here: bool = True
) -> Version:
    if text is None and newest:
        return NEWEST_KNOWN
    try:
        target = resolve_target(text, look_here=look_here)
    except TargetError as error:
        raise wrong_usage(str(error), option=option) from None
    if target.origin is TargetOrigin.NEWEST_KNOWN:
        raise wrong_usage(
            "no DeepSpeed that dsguard knows is installed or pinned here; give the release you "
            "come from",
            option=option,
        )
    version = Version(target.version)
    if Version(version.base_version) > NEWEST_KNOWN:
        raise wrong_usage(
            f"DeepSpeed {version} is newer than {NEWEST_KNOWN}, the last that dsguard knows",
            option=option,
        )
    return version
