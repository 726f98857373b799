"""One case: everything that rules may look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from pathlib import Path

    from dsguard.facts.config_file import NamedConfig
    from dsguard.facts.equation import BatchEquation
    from dsguard.frontends.base import FrontEnd
    from dsguard.frontends.requests import Requests
    from dsguard.launch.context import LaunchContext
    from dsguard.model.fact import Facts
    from dsguard.model.report import Target
    from dsguard.model.source import Location
    from dsguard.model.tree import Document
    from dsguard.schema.problem import Problem
    from dsguard.script.script import Script


class Unreadable(Struct, frozen=True):
    """Why a config has no document: its syntax broke.

    ``message`` is a clause; ``location`` is where the reader stopped.
    """

    message: str
    location: Location
    help: str = ""


class Case(Struct, frozen=True):
    """A config, a launch, and what was resolved from both.

    ``document`` is None where the config could not be read; ``unreadable`` then says why.
    ``recognised`` is False for a document that is no DeepSpeed config at all. ``front_end`` is
    None where it is not known who reads the config. ``folder`` is where the launch is run from.
    ``named`` is the config that the launch names.
    """

    document: Document | None
    unreadable: Unreadable | None
    launch: LaunchContext | None
    script: Script | None
    target: Target
    front_end: FrontEnd | None
    folder: Path
    named: NamedConfig | None
    recognised: bool
    requests: Requests
    problems: tuple[Problem, ...]
    batch: BatchEquation
    facts: Facts

    def locate(self, problem: Problem) -> Location:
        """Where a schema problem stands in the document."""
        if self.document is None:
            raise LookupError("a case without a document has no schema problems")
        return self.document.locate(problem.pointer, problem.part)
