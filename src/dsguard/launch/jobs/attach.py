"""What the job files of a launch add to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dsguard.launch.context import (
    Argument,
    LaunchContext,
    LauncherName,
    ScriptArguments,
)
from dsguard.launch.jobs.find import (
    file_of,
    framework,
    framework_of_document,
    framework_of_script,
)
from dsguard.launch.jobs.job import ConfigForm, Job, JobConfig, JobFileError
from dsguard.model.fact import OriginKind
from dsguard.model.source import Location, Source
from dsguard.model.tree import Document, Object
from dsguard.reading.errors import HjsonSyntaxError, YamlUnavailableError
from dsguard.reading.hjson import parse

if TYPE_CHECKING:
    from dsguard.launch.jobs.find import FileName
    from dsguard.launch.jobs.framework import Framework


def attach_jobs(launch: LaunchContext, folder: Path) -> LaunchContext:
    """The launch with the arguments of its job files; the command line wins over them.

    Args:
        launch: a launch whose launcher is read.
        folder: where the command runs.
    """
    launch = _attach_script_job(launch, folder)
    if launch.launcher is not LauncherName.ACCELERATE:
        return launch
    from dsguard.launch.jobs import accelerate

    job = accelerate.read(launch)
    troubles = (*launch.troubles, *accelerate.examine(launch))
    jobs = (job, *launch.jobs) if job is not None else launch.jobs
    return replace(launch, jobs=jobs, troubles=troubles)


def _attach_script_job(launch: LaunchContext, folder: Path) -> LaunchContext:
    name = framework_of_script(launch)
    file = file_of(launch, name)
    document: Document | None = None
    if file is not None:
        try:
            document = _load(file, folder)
        except JobFileError as error:
            if name is not None:
                launch = replace(launch, troubles=(*launch.troubles, error.trouble))
            elif error.trouble.kind == "job-file-missing":
                return launch
            return _without_file(launch, str(error))
        except (_HiddenFileError, YamlUnavailableError) as error:
            return _without_file(launch, str(error))
        name = name or framework_of_document(document)
    if name is None:
        return launch
    return attach(launch, framework(name), document, file)


def attach(
    launch: LaunchContext,
    framework: Framework,
    document: Document | None,
    file: FileName | None = None,
) -> LaunchContext:
    """The launch with what a framework makes of a file, the command line and its own defaults."""
    if document is not None:
        job = framework.read(document)
    else:
        job = Job(framework.NAME, framework.TITLE, framework.FRONT_END, None)
    typed = framework.typed(launch)
    file_last = file is not None and file.last
    given = [*typed, *job.arguments] if file_last else [*job.arguments, *typed]
    added = framework.fill(launch, ScriptArguments(given), _place(launch, document))
    if not launch.arguments.complete:
        # A word that only the shell knows may hold the flag itself.
        added = [argument._replace(value=None, known=False) for argument in added]
    positionals = launch.arguments.positionals
    arguments = ScriptArguments([*added, *given], positionals, launch.arguments.unread)
    config = job.config or _config(arguments.get("deepspeed"), document, framework.SHIPPED)
    found = (*job.troubles, *framework.examine(launch, arguments))
    return replace(
        launch,
        arguments=arguments,
        jobs=(replace(job, config=config, troubles=found),),
        troubles=(*launch.troubles, *found),
    )


class _HiddenFileError(Exception):
    """The job file is out of reach, which says nothing about whether it is there."""


def _load(file: FileName, folder: Path) -> Document:
    if not file.known:
        raise _HiddenFileError(f"only the shell knows the file {file.name}")
    if file.name.startswith(("https://", "http://")):
        raise _HiddenFileError(f"dsguard does not fetch {file.name}")
    path = folder / file.name
    try:
        if path.is_dir():
            raise _HiddenFileError(f"{file.name} is a folder with the file in it")
        if Path(file.name).is_absolute() and not path.exists():
            raise _HiddenFileError(f"{file.name} is not on this machine")
    except (OSError, ValueError):
        pass  # No possible path; reading it says so.
    from dsguard.launch.jobs.load import load_job

    return load_job(path, file.name, file.location)


def _without_file(launch: LaunchContext, reason: str) -> LaunchContext:
    known = launch.arguments
    return replace(launch, arguments=ScriptArguments([*known], known.positionals, reason))


def _place(launch: LaunchContext, document: Document | None) -> Location:
    """Where values stand that nobody wrote: at the file's first key, or at the launcher."""
    if document is None:
        return launch.launcher_location
    root = document.root
    if isinstance(root, Object) and root.members:
        return Location(document.source, root.members[0].key_span)
    return document.locate("")


def _config(
    argument: Argument | None, document: Document | None, shipped: frozenset[str]
) -> JobConfig | None:
    """The DeepSpeed config that ``deepspeed`` names."""
    if argument is None or argument.value is None:
        return None
    value = argument.value
    if value in shipped:
        return JobConfig(ConfigForm.SHIPPED, argument)
    if not value.lstrip().startswith("{"):
        return JobConfig(ConfigForm.PATH, argument)
    return JobConfig(ConfigForm.INLINE, argument, _inline(argument, document))


def _inline(argument: Argument, document: Document | None) -> Document | None:
    """A config in the job file, at its place there, or as JSON text in an argument."""
    if argument.kind is OriginKind.JOBFILE and document is not None:
        node = document.get(f"/{argument.flag}")
        if isinstance(node, Object):
            return Document(document.source, node)
    if not argument.known:
        return None
    try:
        return parse(Source(argument.flag, argument.value or "", is_file=False))
    except HjsonSyntaxError:
        return None
