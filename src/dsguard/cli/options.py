"""The options that several commands share, and what they mean for a run."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from dsguard.checking import Settings
from dsguard.facts.resolve import Options
from dsguard.facts.target import TargetError, resolve_target
from dsguard.frontends.base import FrontEndName
from dsguard.render.stream import ColorChoice
from dsguard.rules import all_rules
from dsguard.selection import SelectionError, select


class FrontEndChoice(str, Enum):
    """What ``--front-end`` may say."""

    AUTO = "auto"
    PLAIN = "plain"
    TRANSFORMERS = "transformers"
    ACCELERATE = "accelerate"
    LIGHTNING = "lightning"


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
    FrontEndChoice,
    typer.Option(help="Who hands the config to DeepSpeed. Default: read from the launch."),
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
Color = Annotated[ColorChoice, typer.Option(help="Colour in the output.")]


def settings_of(
    target: str | None,
    world_size: int | None,
    hostfile: Path | None,
    gpus_per_node: int | None,
    front_end: FrontEndChoice,
    selected: list[str] | None = None,
    ignored: list[str] | None = None,
) -> Settings:
    """The settings that these options mean.

    Raises:
        typer.BadParameter: an option's value cannot be used; the program exits with 2.
    """
    try:
        judged_by = resolve_target(target)
        rules = select(selected, ignored)
    except TargetError as error:
        raise typer.BadParameter(str(error), param_hint="--target") from None
    except SelectionError as error:
        raise typer.BadParameter(str(error), param_hint="--select/--ignore") from None
    # Unlike Path.is_file, this takes any text and a folder out of reach.
    if hostfile is not None and not os.path.isfile(hostfile):  # noqa: PTH113
        raise typer.BadParameter(f"there is no file {hostfile}", param_hint="--hostfile")
    name = None if front_end is FrontEndChoice.AUTO else FrontEndName(front_end.value)
    return Settings(
        judged_by, Options(world_size, name), rules, Path.cwd(), hostfile, gpus_per_node
    )
