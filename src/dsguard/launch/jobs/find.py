"""Which framework reads the arguments of a launch, and from which file.

Frameworks go by the names of their modules here, so that only one that occurs is imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from msgspec import Struct

from dsguard.launch.context import LauncherName

if TYPE_CHECKING:
    from dsguard.launch.context import Argument, LaunchContext, Word
    from dsguard.launch.jobs.framework import Framework
    from dsguard.model.source import Location
    from dsguard.model.tree import Document

SUFFIXES = (".yaml", ".yml", ".json")
"""Files that may be job files."""

FRAMEWORKS = (
    "axolotl",
    "llamafactory_v1",
    "llamafactory",
    "swift",
    "trl",
    "training_arguments",
)
"""Every framework; the first one that recognises a file reads it."""

_BY_PACKAGE = {
    "axolotl.cli.": "axolotl",
    "llamafactory.": "llamafactory",
    "swift.cli.": "swift",
    "trl.scripts.": "trl",
}
_BY_PATH = {
    "axolotl/cli/train.py": "axolotl",
    "llamafactory/launcher.py": "llamafactory",
    "swift/cli/sft.py": "swift",
    "swift/cli/pt.py": "swift",
    "swift/cli/rlhf.py": "swift",
    "trl/scripts/sft.py": "trl",
}
"""By the end of a script's path."""


class FileName(Struct, frozen=True):
    """The name of a job file in a launch; ``last`` says that it wins over the command line."""

    name: str
    location: Location
    known: bool = True
    last: bool = False


def has_jobs(launch: LaunchContext) -> bool:
    """Whether some file, or some framework, adds to what a launch says."""
    if launch.launcher is LauncherName.ACCELERATE:
        return True
    return framework_of_script(launch) is not None or file_of(launch, None) is not None


def framework(name: str) -> Framework:
    """The module of a framework."""
    found: Framework = import_module(f"dsguard.launch.jobs.{name}")
    return found


def framework_of_script(launch: LaunchContext) -> str | None:
    """The framework whose own script is started."""
    script = launch.script
    if script is None or not script.known:
        return None
    if launch.module:
        found = next((f for p, f in _BY_PACKAGE.items() if script.text.startswith(p)), None)
    else:
        found = next((f for p, f in _BY_PATH.items() if script.text.endswith(p)), None)
    if found == "llamafactory":
        from dsguard.launch.jobs.keys import is_on

        return "llamafactory_v1" if is_on(launch.variable("USE_V1")) else found
    return found


def framework_of_document(document: Document) -> str | None:
    """The framework that a file is written for, None where that cannot be told."""
    return next((name for name in FRAMEWORKS if framework(name).recognise(document)), None)


def file_of(launch: LaunchContext, framework: str | None) -> FileName | None:
    """The job file that a launch names: the first operand, or behind ``--config``."""
    words = launch.arguments.positionals
    flag = launch.arguments.get("config")
    if words and _may_be_file(words[0], framework, alone=not list(launch.arguments)):
        return FileName(words[0].text, launch.command.locate(words[0]), words[0].known)
    if flag is None or flag.value is None or framework in ("axolotl", "llamafactory"):
        return None
    if framework is None and not flag.value.endswith(SUFFIXES):
        return None
    return _behind_flag(flag, framework)


def _behind_flag(flag: Argument, framework: str | None) -> FileName:
    last = framework == "swift"
    return FileName(flag.value or "", flag.value_location, flag.known, last)


def _may_be_file(word: Word, framework: str | None, *, alone: bool) -> bool:
    """Whether an operand names a file; axolotl takes a file of any name.

    A word that only the shell knows may as well hold flags, unless it stands ``alone``.
    """
    if not word.known:
        return framework == "axolotl" or (framework is not None and alone)
    return framework == "axolotl" or word.text.endswith(SUFFIXES)
