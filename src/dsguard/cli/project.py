"""The settings of the project that a command works in."""

from __future__ import annotations

import os
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dsguard.baseline import Baseline, BaselineError, read_baseline
from dsguard.cli import options
from dsguard.cli.output import complain, wrong_usage
from dsguard.paths import Globs
from dsguard.policy import Policy
from dsguard.reading.errors import ReadError
from dsguard.reading.load import load_path
from dsguard.render.wording import place
from dsguard.settings.find import find_settings
from dsguard.settings.project import Project, SettingsError
from dsguard.suppression.ignore_at import IgnoreAt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.checking import Settings

USAGE = 2
"""Exit code: wrong usage or settings."""


@contextmanager
def mistakes_told() -> Iterator[None]:
    """End the program with exit code 2 where the settings cannot be used, and say why."""
    try:
        yield
    except SettingsError as error:
        for mistake in error.mistakes:
            help = f"; {mistake.help}" if mistake.help else ""
            complain(f"{place(mistake.at)}: {mistake.message}{help}")
        raise typer.Exit(USAGE) from None
    except ReadError as error:
        help = f"; {error.help}" if error.help else ""
        complain(f"{error.subject}: {error.message}{help}")
        raise typer.Exit(USAGE) from None


def load_project(settings: Path | None, *, isolated: bool) -> Project:
    """The settings in force: those of the option, else the nearest ones, else none.

    Raises:
        SettingsError: they cannot be used.
        ReadError: their file cannot be read.
        typer.BadParameter: two options contradict each other.
    """
    if isolated and settings is not None:
        raise wrong_usage("means the opposite of --isolated", option="--settings")
    try:
        here = Path.cwd()
    except OSError:
        raise ReadError(".", "the working folder is gone", "change into one that is there") from (
            None
        )
    found = settings if settings is not None else None if isolated else find_settings(here)
    if found is None:
        return Project(here)
    # Here, because most projects have no settings, and reading some takes pydantic.
    from dsguard.settings.load import read_project

    return read_project(here / found, shown(here / found))


def shown(path: Path) -> str:
    """A file as the user sees it from the working folder."""
    try:
        return os.path.relpath(path)
    except ValueError:  # on another drive
        return str(path)


def policy_of(
    project: Project,
    settings: Settings,
    baseline: Path | None,
    *,
    accepts: bool = True,
    today: date | None = None,
) -> Policy:
    """What the project makes of findings; without ``accepts`` no baseline counts.

    Raises:
        SettingsError: the settings cannot be used.
        ReadError: the baseline cannot be read.
    """
    ignore_at = tuple(
        IgnoreAt(
            one.rule,
            one.file,
            Globs([one.file], project.root),
            one.reason,
            project.place("ignore-at", index, "rule"),
            one.pointer,
            one.expires,
        )
        for index, one in enumerate(project.settings.ignore_at)
    )
    return Policy(
        settings.rules,
        options.severities(project),
        options.locked_rules(project),
        ignore_at,
        load_baseline(project, baseline) if accepts else None,
        today or date.today(),
    )


def baseline_path(project: Project, option: Path | None) -> Path | None:
    """Where the baseline lies; None where neither the option nor the settings name one."""
    if option is not None:
        return Path.cwd() / option
    named = project.settings.baseline
    return project.root / named if named is not None else None


def load_baseline(project: Project, option: Path | None) -> Baseline | None:
    """The baseline that the option or the settings name, None where there is none.

    Raises:
        SettingsError: it is no baseline.
        ReadError: it cannot be read.
    """
    path = baseline_path(project, option)
    if path is None:
        return None
    try:
        source = load_path(path, shown(path))
    except ReadError as error:
        help = error.help or "write it with dsguard baseline create"
        raise ReadError(error.subject, error.message, help) from None
    try:
        return read_baseline(source, path.parent)
    except BaselineError as error:
        raise ReadError(source.name, error.message, error.help) from None


def excluded(project: Project) -> Globs:
    """The files that the settings leave out."""
    return Globs(project.settings.exclude, project.root)
