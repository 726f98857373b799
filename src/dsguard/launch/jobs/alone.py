"""A job file without a launch command: what it says, and what only a command could say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.context import (
    JOB_FILE,
    Command,
    LaunchContext,
    LauncherName,
    ScriptArguments,
    Word,
)
from dsguard.launch.jobs import accelerate
from dsguard.launch.jobs.attach import attach, attach_jobs
from dsguard.launch.jobs.find import framework, framework_of_document
from dsguard.launch.jobs.load import parse_job
from dsguard.launch.launchers.accelerate import read_config_alone
from dsguard.model.fact import Unknown
from dsguard.model.source import Source, Span

if TYPE_CHECKING:
    from dsguard.launch.call import Surroundings


def read_job_file(source: Source, surroundings: Surroundings) -> LaunchContext | None:
    """A job file as a launch whose command is not known; None where it is no job file.

    The command of the result is the name of the file. The world size is unknown unless the file
    says how many processes are started, as only Accelerate's does.

    Args:
        source: the text of the file; it is JSON where its name says so, else YAML.
        surroundings: where the job would be started.

    Raises:
        dsguard.launch.jobs.job.JobFileError: the text is no YAML (no JSON).
        dsguard.reading.errors.YamlUnavailableError: it is YAML, and no reader is installed.
    """
    document = parse_job(source)
    command = Command(
        Source(JOB_FILE, source.name, is_file=False),
        (Word(source.name, Span(0, len(source.name))),),
    )
    if accelerate.recognise(document):
        launch = read_config_alone(command, document, surroundings)
        return attach_jobs(launch, surroundings.folder)
    name = framework_of_document(document)
    if name is None:
        return None
    nothing = Unknown("no launch command was given, and the job file does not count processes")
    launch = LaunchContext(
        command=command,
        launcher=LauncherName.UNKNOWN,
        launcher_location=command.locate(command.words[0]),
        environment=(),
        script=None,
        module=False,
        arguments=ScriptArguments(()),
        world_size=nothing,
        nodes=nothing,
        processes_per_node=nothing,
        launcher_arguments=ScriptArguments(()),
    )
    return attach(launch, framework(name), document)
