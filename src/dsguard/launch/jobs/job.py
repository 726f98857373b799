"""What a job file is: the arguments it gives, the DeepSpeed config it names, its troubles."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct

from dsguard.launch.context import LaunchTrouble

if TYPE_CHECKING:
    from dsguard.launch.context import Argument, TroubleKind
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

    @property
    def is_file(self) -> bool:
        """Whether the argument names a file of the user's."""
        return self.form is ConfigForm.PATH

    @property
    def is_shipped(self) -> bool:
        """Whether it is one of the framework's own."""
        return self.form is ConfigForm.SHIPPED


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


class JobFileError(Exception):
    """A job file cannot be had, or its framework stops over it."""

    def __init__(self, kind: TroubleKind, message: str, location: Location) -> None:
        super().__init__(message)
        self.trouble = LaunchTrouble(kind, message, location, True)
