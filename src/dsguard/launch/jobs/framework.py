"""The shape of the modules of the frameworks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dsguard.launch.context import Argument, LaunchContext, LaunchTrouble, ScriptArguments
    from dsguard.launch.jobs import (
        axolotl,
        llamafactory,
        llamafactory_v1,
        swift,
        training_arguments,
        trl,
    )
    from dsguard.launch.jobs.job import Job
    from dsguard.model.source import Location
    from dsguard.model.tree import Document


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


if TYPE_CHECKING:
    # Nobody else shows a type checker the modules, which are imported by their names.
    _ALL: tuple[Framework, ...] = (
        axolotl,
        llamafactory,
        llamafactory_v1,
        swift,
        training_arguments,
        trl,
    )
