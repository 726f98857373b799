"""Which framework reads the arguments of a launch, and from which file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from dsguard.launch.jobs import (
    axolotl,
    llamafactory,
    llamafactory_v1,
    swift,
    training_arguments,
    trl,
)
from dsguard.launch.jobs.keys import is_on
from dsguard.launch.jobs.load import SUFFIXES

if TYPE_CHECKING:
    from dsguard.launch.context import Argument, LaunchContext, Word
    from dsguard.launch.jobs.job import Framework
    from dsguard.model.source import Location
    from dsguard.model.tree import Document

FRAMEWORKS: tuple[Framework, ...] = (
    axolotl,
    llamafactory_v1,
    llamafactory,
    swift,
    trl,
    training_arguments,
)
"""Every framework; the first one that recognises a file reads it."""

_BY_PACKAGE: dict[str, Framework] = {
    "axolotl.cli.": axolotl,
    "llamafactory.": llamafactory,
    "swift.cli.": swift,
    "trl.scripts.": trl,
}
_BY_PATH: dict[str, Framework] = {
    "axolotl/cli/train.py": axolotl,
    "llamafactory/launcher.py": llamafactory,
    "swift/cli/sft.py": swift,
    "swift/cli/pt.py": swift,
    "swift/cli/rlhf.py": swift,
    "trl/scripts/sft.py": trl,
}
"""By the end of a script's path."""


class FileName(Struct, frozen=True):
    """The name of a job file in a launch; ``last`` says that it wins over the command line."""

    name: str
    location: Location
    known: bool = True
    last: bool = False


def framework_of_script(launch: LaunchContext) -> Framework | None:
    """The framework whose own script is started."""
    script = launch.script
    if script is None or not script.known:
        return None
    if launch.module:
        found = next((f for p, f in _BY_PACKAGE.items() if script.text.startswith(p)), None)
    else:
        found = next((f for p, f in _BY_PATH.items() if script.text.endswith(p)), None)
    if found is llamafactory and is_on(launch.variable("USE_V1")):
        return llamafactory_v1
    return found


def framework_of_document(document: Document) -> Framework | None:
    """The framework that a file is written for, None where that cannot be told."""
    return next((f for f in FRAMEWORKS if f.recognise(document)), None)


def file_of(launch: LaunchContext, framework: Framework | None) -> FileName | None:
    """The job file that a launch names: the first operand, or behind ``--config``."""
    words = launch.arguments.positionals
    flag = launch.arguments.get("config")
    if words and _may_be_file(words[0], framework, alone=not list(launch.arguments)):
        return FileName(words[0].text, launch.command.locate(words[0]), words[0].known)
    if flag is None or flag.value is None or framework in (axolotl, llamafactory):
        return None
    if framework is None and not flag.value.endswith(SUFFIXES):
        return None
    return _behind_flag(flag, framework)


def _behind_flag(flag: Argument, framework: Framework | None) -> FileName:
    last = framework is swift
    return FileName(flag.value or "", flag.value_location, flag.known, last)


def _may_be_file(word: Word, framework: Framework | None, *, alone: bool) -> bool:
    """Whether an operand names a file; axolotl takes a file of any name.

    A word that only the shell knows may as well hold flags, unless it stands ``alone``.
    """
    if not word.known:
        return framework is axolotl or (framework is not None and alone)
    return framework is axolotl or word.text.endswith(SUFFIXES)
