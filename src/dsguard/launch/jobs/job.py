"""What a job file is: the arguments it gives, the DeepSpeed config it names, its troubles."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from dsguard.launch.context import Argument, LaunchContext, LaunchTrouble, ScriptArguments
    from dsguard.model.source import Location
    from dsguard.model.tree import Document


class ConfigForm(str, Enum):
    """How a job names its DeepSpeed config.

    ``path``: a file. ``shipped``: a word such as ``zero2`` for a file that the framework brings
    along. ``inline``: it stands in the job file itself, or in the command.
    """

    PATH = "path"
    SHIPPED = "shipped"
    INLINE = "inline"


class JobConfig(Struct, frozen=True):
    """The DeepSpeed config of a job.

    ``argument`` names it. ``document`` is an inline config with its places in the job file; None
    for the other forms, and where it depends on what is not known before the run.
    """

    form: ConfigForm
    argument: Argument
    document: Document | None = None


class Job(Struct, frozen=True):
    """A file of arguments and the framework that reads it.

    ``front_end`` is the name of the front end that the framework ends in. ``document`` is None
    for a framework that was given its arguments on the command line only. ``arguments`` are
    those of the file under the names of TrainingArguments, where the framework has others.
    """

    name: str
    title: str
    front_end: str
    document: Document | None
    arguments: tuple[Argument, ...] = ()
    config: JobConfig | None = None
    troubles: tuple[LaunchTrouble, ...] = ()


class Framework(Protocol):
    """What every module of a framework offers."""

    @property
    def NAME(self) -> str:  # noqa: N802
        """The short name, such as ``axolotl``."""

    @property
    def TITLE(self) -> str:  # noqa: N802
        """The name in messages."""

    @property
    def FRONT_END(self) -> str:  # noqa: N802
        """The front end that the framework hands its arguments to."""

    @property
    def SHIPPED(self) -> frozenset[str]:  # noqa: N802
        """The words that stand for a DeepSpeed config of the framework's own."""

    def recognise(self, document: Document) -> bool:
        """Whether a file is written for this framework; only unmistakable keys count."""

    def read(self, document: Document) -> Job:
        """What the file alone says."""

    def typed(self, launch: LaunchContext) -> list[Argument]:
        """The command line as this framework reads it, under the names of TrainingArguments."""

    def fill(
        self, launch: LaunchContext, arguments: ScriptArguments, at: Location
    ) -> list[Argument]:
        """What the framework sets where ``arguments``, file and command line, do not.

        ``at`` is the place that such values get. One that depends on the run is not known.
        """

    def examine(self, launch: LaunchContext, arguments: ScriptArguments) -> list[LaunchTrouble]:
        """What is wrong with the launch as typed, or with file and command line together."""
