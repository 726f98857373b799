"""The pairs that a command is about: those it names, or the jobs of the settings."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dsguard.cli.inputs import collect
from dsguard.cli.output import wrong_usage
from dsguard.cli.project import excluded, shown
from dsguard.launch.context import Command, ShellSyntaxError
from dsguard.launch.environ import NO_ENVIRON

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dsguard.cli.launch_words import LaunchWords
    from dsguard.cli.options import JudgedBy
    from dsguard.model.report import Failure
    from dsguard.pairing import Input
    from dsguard.settings.model import JobSettings
    from dsguard.settings.project import Project

_NOTHING = "name a config, a folder or - for standard input, or give a launch command after --"


def gather(
    names: Sequence[str],
    launch: LaunchWords,
    project: Project,
    judged_by: JudgedBy,
    jobs: Sequence[str] | None,
    *,
    force_exclude: bool = False,
    nothing: str = _NOTHING,
) -> tuple[list[Input], list[Failure]]:
    """The pairs to check: the named configs, the launch's own, or the jobs of the settings.

    ``force_exclude`` leaves out even named files that the settings exclude. ``nothing`` is said
    where nothing is named and there is no job.

    Raises:
        typer.BadParameter: nothing is named and there is no job, or both are named.
        SettingsError: a job cannot be used.
    """
    launch.refuse_empty()
    if jobs and (names or launch.given):
        raise wrong_usage(
            "a job has its own config and launch command; leave those out", option="--job"
        )
    if names or launch.given:
        exclude = excluded(project)
        if force_exclude:
            kept = [name for name in names if name == "-" or not exclude.match(name)]
            if names and not kept:
                return [], []
            names = kept
        return collect(names, launch.command(), judged_by(project), exclude=exclude)
    if not jobs and not project.settings.job:
        raise wrong_usage(nothing, option="CONFIG")
    inputs: list[Input] = []
    failures: list[Failure] = []
    for index in _chosen(project, jobs or ()):
        found, failed = _of_job(project, index, judged_by)
        inputs += found
        failures += failed
    return inputs, failures


def _chosen(project: Project, names: Sequence[str]) -> list[int]:
    known = [job.name for job in project.settings.job]
    for index, name in enumerate(known):
        if name in known[:index]:
            raise project.mistake(f"two jobs are called {name}", "job", index, "name")
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"the jobs are: {', '.join(known)}"
            hint = hint if known else "the settings have none"
            raise wrong_usage(f"no job is called {name}; {hint}", option="--job")
    return [index for index, name in enumerate(known) if not names or name in names]


def _of_job(project: Project, index: int, judged_by: JudgedBy) -> tuple[list[Input], list[Failure]]:
    """The pairs of one job, read as from the folder of the settings."""
    job = project.settings.job[index]
    if job.config is None and job.launch is None:
        message = f"the job {job.name} has neither a config nor a launch"
        raise project.mistake(message, "job", index, "name")
    # The settings are the project's, whoever checks it.
    here = replace(judged_by(project.of_job(index)), folder=project.root, environ=NO_ENVIRON)
    names = [shown(project.root / job.config)] if job.config is not None else []
    command = _command(project, job, index)
    folder = None if project.root == Path.cwd() else Path(shown(project.root))
    subject = f"launch command of {job.name}"
    return collect(names, command, here, subject=subject, shown=folder, exclude=excluded(project))


def _command(project: Project, job: JobSettings, index: int) -> Command | None:
    name = f"<launch command of {job.name}>"
    if job.launch is None:
        return None
    if isinstance(job.launch, list):
        return Command.of_words(job.launch, name)
    try:
        command = Command.of_text(job.launch, name)
    except ShellSyntaxError as error:
        message = f"the launch of the job {job.name} cannot be read: {error}"
        raise project.mistake(message, "job", index, "launch") from None
    if not command.words:
        raise project.mistake(f"the launch of the job {job.name} is empty", "job", index, "launch")
    return command
