"""One pair to check: a config and a launch command, either of which may be absent."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from dsguard.checking import Settings, check_source, read_script_of
from dsguard.facts.config_file import Whereabouts, is_file, named_config
from dsguard.frontends.detect import config_argument
from dsguard.model.allowance import Allowance
from dsguard.model.report import Check, Failure
from dsguard.model.source import Location, Source
from dsguard.reading.errors import ReadError, YamlUnavailableError
from dsguard.reading.load import load_path
from dsguard.script.load import load_script

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dsguard.launch.context import Argument, LaunchContext
    from dsguard.model.tree import Document
    from dsguard.script.script import Script

MOST_FINDINGS = 50_000
"""Findings of all the checks of one call; what they find beyond them is not told."""

MOST_CHARACTERS = 32 << 20
"""Characters that the findings of all the checks of one call take."""

STDIN = "<stdin>"
"""The name of a config that comes through standard input."""


class Input(Struct, frozen=True):
    """One pair to check.

    ``config`` is None where only the launch is checked; ``path`` is None for a config that is no
    file of its own. ``gap`` says why the config is not checked, None where nothing is left out or
    a rule says it.
    """

    config: Source | Document | None
    path: Path | None
    launch: LaunchContext | None
    settings: Settings
    gap: Failure | None = None
    script: Script | None = None

    @property
    def worth_checking(self) -> bool:
        """Whether there is a config, or a launch that may have been meant to read one."""
        if self.config is not None or self.launch is None or self.launch.troubles:
            return True
        if self.script is not None and self.script.loop.engines:
            return True
        return _names_config(self.launch)

    @property
    def editable(self) -> bool:
        """Whether the config is a file of its own, or standard input."""
        if not isinstance(self.config, Source):
            return False
        return self.path is not None or self.config.name == STDIN

    def files(self) -> Iterator[tuple[str, Path]]:
        """The files that say what is run, as they were named and where they lie."""
        folder = self.settings.folder
        if self.path is not None:
            name = self.config.name if isinstance(self.config, Source) else str(self.path)
            yield name, self.path
        launch = self.launch
        if launch is None:
            return
        if launch.command.source.is_file:
            yield launch.command.source.name, folder / launch.command.source.name
        if launch.script is not None and launch.script.known and not launch.module:
            yield launch.script.text, folder / launch.script.text
        documents = [job.document for job in launch.jobs] + [launch.launcher_config]
        for document in documents:
            if document is not None and document.source.is_file:
                yield document.source.name, folder / document.source.name
        hostfile = launch.launcher_arguments.get("hostfile")
        if hostfile is not None and hostfile.value:
            yield hostfile.value, folder / hostfile.value

    def check(self) -> Check:
        """Run the check."""
        check = check_source(
            self.config, self.launch, self.settings, config_path=self.path, script=self.script
        )
        return replace(check, editable=self.editable)


def check_all(inputs: Iterable[Input]) -> list[Check]:
    """The checks of one call; all of them together hold no more findings than can be told."""
    allowance, checks = Allowance(MOST_FINDINGS, MOST_CHARACTERS), []
    for item in inputs:
        check = item.check()
        told, more = allowance.take(check.findings)
        if more:
            rest = frozenset(finding.rule for finding in check.findings[len(told) :])
            check = replace(
                check,
                findings=tuple(told),
                judged=check.judged - rest,
                untold=check.untold | rest,
            )
        checks.append(check)
    return checks


def pair_of_launch(
    launch: LaunchContext, settings: Settings, subject: str, *, shown: Path | None = None
) -> Input:
    """The pair of a launch and the config that it names.

    Args:
        launch: the launch, read as from ``settings.folder``.
        settings: how to check it.
        subject: what the launch is called where it has no place in a file.
        shown: ``settings.folder`` as seen by the user; None where that is the user's own.
    """
    if launch.inline_config is not None:
        return Input(launch.inline_config, None, launch, settings)
    named = named_config(launch, settings.folder, None)
    if named is None or named.whereabouts is Whereabouts.NOT_A_PATH:
        argument = config_argument(launch)
        if argument is not None and argument.known and _is_text(argument):
            text = Source(f"<{argument.flag}>", argument.value or "", is_file=False)
            return Input(text, None, launch, settings)
        gap = None if launch.refusal is not None else _gap(launch, argument, subject)
        if argument is None and gap is not None:
            script = read_script_of(launch, settings)
            if script is not None:
                return pair_with_script(script, launch, settings, gap)
        return Input(None, None, launch, settings, gap)
    argument, name = named.argument, named.argument.value or ""
    if named.whereabouts is Whereabouts.MISSING:
        # The rule about a missing config says it.
        return Input(None, None, launch, settings)
    if named.whereabouts is Whereabouts.OTHER_MACHINE:
        message = f"{argument.flag} names {name}, which is not on this machine"
        gap = Failure(_where(argument, subject), message, _name_it(launch))
        return Input(None, None, launch, settings, gap)
    try:
        source = load_path(named.path, name if shown is None else str(shown / name))
    except ReadError as error:
        gap = Failure(error.subject, error.message, error.help)
        return Input(None, None, launch, settings, gap)
    return Input(source, named.path, launch, settings)


def pair_of_script(
    path: Path, name: str, launch: LaunchContext | None, settings: Settings
) -> Input:
    """The pair of a training script: the config that it holds or names, and what starts it.

    ``name`` is the path as it is shown to the user.

    Raises:
        ReadError: there is no such file, it is no Python, or nothing in it is DeepSpeed's; or
            ``launch`` starts another script.
    """
    load_path(path, name)
    script = load_script(path, name)
    if script is None or script.unreadable is not None:
        reason = script.unreadable if script is not None else "it is not a regular file"
        raise ReadError(name, f"cannot be read as a script: {reason}", "")
    if launch is not None:
        started = launch.script
        if started is None or Path(started.text).name != path.name:
            raise ReadError(name, "is not the script that the command after -- starts", "")
        if config_argument(launch) is not None:
            return replace(pair_of_launch(launch, settings, "launch command"), script=script)
    if not script.trains and not script.training_arguments:
        raise ReadError(
            name,
            "shows nothing of DeepSpeed",
            "dsguard looks for deepspeed.initialize, Accelerator, TrainingArguments and the like",
        )
    return pair_with_script(script, launch, settings, None)


def pair_with_script(
    script: Script, launch: LaunchContext | None, settings: Settings, gap: Failure | None
) -> Input:
    """The pair of a script and the config that it holds or names, if it plainly does.

    ``gap`` is what to say where it does not.
    """
    from dsguard.facts.script_config import config_of_script, document_of, named_by_script
    from dsguard.frontends.requests import Requests

    config = config_of_script(script)
    if config is None:
        return Input(None, None, launch, settings, gap, script)
    requests = Requests(launch, script)
    if config.literal is not None:
        document = document_of(config.literal, requests)
        return Input(document, None, launch, settings, script=script)
    name = named_by_script(config, script, requests)
    if config.path is None:
        # The script makes its config when it runs, and there is no file to name.
        gap = None
    if name is None:
        return Input(None, None, launch, settings, gap, script)
    folders = [settings.folder, *(settings.folder / p for p in Path(script.source.name).parents)]
    for folder in dict.fromkeys(folders):
        if is_file(folder / name):
            shown = os.path.relpath(folder / name, settings.folder)
            source = load_path(folder / name, name if folder == settings.folder else shown)
            return Input(source, folder / name, launch, settings, script=script)
    at = place_in_file(config.location)
    missing = Failure(at, f"the script reads {name}, which is not here", "name the config first")
    return Input(None, None, launch, settings, missing, script)


def _is_text(argument: Argument) -> bool:
    """Whether TrainingArguments get the config itself, as JSON text."""
    return argument.name == "deepspeed" and (argument.value or "").lstrip().startswith("{")


def _names_config(launch: LaunchContext) -> bool:
    return config_argument(launch) is not None or any(job.config for job in launch.jobs)


def _gap(launch: LaunchContext, argument: Argument | None, subject: str) -> Failure | None:
    """Why the config of a launch is not checked; None where the framework brings its own."""
    if not _names_config(launch):
        if str(YamlUnavailableError()) in (
            launch.arguments.unread,
            launch.launcher_arguments.unread,
        ):
            return Failure(subject, "its YAML cannot be read", "install dsguard[yaml]")
        return Failure(subject, "names no DeepSpeed config", _name_it(launch))
    if argument is None:
        return Failure(subject, "its DeepSpeed config is only known when it runs")
    if any(job.config and job.config.is_shipped for job in launch.jobs):
        return None
    if not argument.known:
        message = f"{argument.flag} names {argument.value}, which is only known when it runs"
    else:
        message = f"{argument.flag} {argument.value} is no file name that dsguard knows"
    return Failure(_where(argument, subject), message, _name_it(launch))


def _where(argument: Argument, subject: str) -> str:
    return place_in_file(argument.value_location) or subject


def _name_it(launch: LaunchContext) -> str:
    """How to check a config together with a launch that does not give it."""
    if launch.stands_alone:
        return "check it with the command that starts it: dsguard check -- COMMAND"
    at = launch.launcher_location
    program = at.source.slice(at.span) or launch.launcher.value
    return f"name the config first: dsguard check ds_config.json -- {program} ..."


def place_in_file(location: Location) -> str:
    """``path:line:column``; empty where the place is in no file."""
    if not location.source.is_file:
        return ""
    line, column = location.source.position(location.span.start)
    return f"{location.source.name}:{line}:{column}"
