"""The options that several commands share, and what they mean for a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from dsguard.checking import Settings
from dsguard.cli.output import wrong_usage
from dsguard.facts.case import Case
from dsguard.facts.resolve import Options
from dsguard.facts.target import TargetError, resolve_target
from dsguard.frontends.base import FrontEndName
from dsguard.launch.environ import NO_ENVIRON, read_environ
from dsguard.model.finding import Severity
from dsguard.model.rule import Rule
from dsguard.render.stream import ColorChoice
from dsguard.rules import all_rules
from dsguard.selection import SelectionError, select, slug_of
from dsguard.settings.model import FrontEndChoice
from dsguard.settings.project import Project

JudgedBy: TypeAlias = Callable[[Project], Settings]
"""What the options of a command and some settings together mean."""


def complete_rule(incomplete: str) -> list[str]:
    """The slugs that a shell offers."""
    return [rule.meta.slug for rule in all_rules() if rule.meta.slug.startswith(incomplete)]


Target = Annotated[
    str | None,
    typer.Option(
        metavar="VERSION",
        help="Judge by this DeepSpeed release. Default: the installed one, else what the "
        "project pins, else the newest known.",
    ),
]
WorldSize = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="All processes of the job; wins over the launch command."
    ),
]
Hostfile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Read this hostfile instead of the one the launch names."),
]
GpusPerNode = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Devices of one machine, where the launcher would count them itself.",
    ),
]
FrontEnd = Annotated[
    FrontEndChoice | None,
    typer.Option(help="Who hands the config to DeepSpeed. Default: auto, read from the launch."),
]
WriteContract = Annotated[
    Path | None,
    typer.Option(
        "--write-contract",
        metavar="FILE",
        help="Keep the contract of the run here, for the guard and for dsguard diff.",
    ),
]
Select = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RULE,...",
        help="Run only these rules: slugs, codes, or families such as DSG2.",
        autocompletion=complete_rule,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="RULE,...", help="Leave these rules out.", autocompletion=complete_rule),
]
NoEnv = Annotated[
    bool,
    typer.Option(
        "--no-env",
        help="Leave this machine's environment out: variables of the shell, installed packages, "
        "files in the home folder.",
    ),
]
Color = Annotated[ColorChoice, typer.Option(help="Colour in the output.")]


Jobs = Annotated[
    list[str] | None,
    typer.Option("--job", metavar="NAME", help="Check this job of the settings; may be repeated."),
]
Isolated = Annotated[
    bool, typer.Option("--isolated", help="Leave dsguard.toml and pyproject.toml unread.")
]
SettingsFile = Annotated[
    Path | None,
    typer.Option(
        "--settings", metavar="FILE", help="Read the settings from here. Default: looked for."
    ),
]
ForceExclude = Annotated[
    bool,
    typer.Option("--force-exclude", help="Leave out what the settings exclude even when named."),
]
BaselineFile = Annotated[
    Path | None,
    typer.Option("--baseline", metavar="FILE", help="Leave out the findings accepted here."),
]


def settings_of(
    project: Project,
    target: str | None = None,
    world_size: int | None = None,
    hostfile: Path | None = None,
    gpus_per_node: int | None = None,
    front_end: FrontEndChoice | None = None,
    selected: list[str] | None = None,
    ignored: list[str] | None = None,
    *,
    no_env: bool = False,
) -> Settings:
    """What the options mean, with the settings of the project where they say nothing.

    With ``no_env`` the answer is the same on every machine.

    Raises:
        typer.BadParameter: an option's value cannot be used; the program exits with 2.
        SettingsError: a setting's value cannot be used.
    """
    given = project.settings
    try:
        judged_by = resolve_target(target or given.target, look_here=not no_env)
    except TargetError as error:
        if target is None and given.target is not None:
            raise project.mistake(str(error), "target") from None
        raise wrong_usage(str(error), option="--target") from None
    # Unlike Path.is_file, this takes any text and a folder out of reach.
    if hostfile is not None and not os.path.isfile(hostfile):  # noqa: PTH113
        raise wrong_usage(f"there is no file {hostfile}", option="--hostfile")
    if hostfile is None and given.hostfile is not None:
        hostfile = project.root / given.hostfile
        if not os.path.isfile(hostfile):  # noqa: PTH113
            raise project.mistake(f"there is no file {given.hostfile}", "hostfile")
    choice = front_end or given.front_end or FrontEndChoice.AUTO
    name = None if choice is FrontEndChoice.AUTO else FrontEndName(choice.value)
    options = Options(world_size or given.world_size, name)
    rules = _rules(project, selected, ignored)
    devices = gpus_per_node or given.gpus_per_node
    environ = NO_ENVIRON if no_env else read_environ(os.environ, _home())
    return Settings(judged_by, options, rules, Path.cwd(), hostfile, devices, environ)


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # a user without entry in the password database
        return None


def _rules(
    project: Project, selected: list[str] | None, ignored: list[str] | None
) -> list[Rule[Case]]:
    given, locked = project.settings, locked_rules(project)
    for index, name in enumerate(given.select):
        with _blamed(project, "select", index):
            select([name], None)
    for index, name in enumerate(given.ignore):
        with _blamed(project, "ignore", index):
            select(None, [name], locked)
    try:
        if selected:  # asked for now, whatever the settings leave out
            return select(selected, ignored, locked)
        return select(given.select, [*given.ignore, *(ignored or ())], locked)
    except SelectionError as error:
        raise wrong_usage(str(error), option="--select/--ignore") from None


@contextmanager
def _blamed(project: Project, *path: str | int) -> Iterator[None]:
    """Say where in the settings a name of a rule stands that cannot be used."""
    try:
        yield
    except SelectionError as error:
        raise project.mistake(str(error), *path) from None


def locked_rules(project: Project) -> frozenset[str]:
    """The slugs of the rules that nothing may hide.

    Raises:
        SettingsError: a name fits no rule.
    """
    slugs: set[str] = set()
    for index, name in enumerate(project.settings.locked):
        with _blamed(project, "locked", index):
            slugs.add(slug_of(name))
    return frozenset(slugs)


def severities(project: Project) -> dict[str, Severity]:
    """The severities that the project gives to rules, by slug.

    Raises:
        SettingsError: a name fits no rule.
    """
    found: dict[str, Severity] = {}
    for name, severity in project.settings.severity.items():
        with _blamed(project, "severity", name):
            found[slug_of(name)] = severity
    return found
