"""The settings of a project and where they stand."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from dsguard.model.source import Location, Source
from dsguard.settings.model import ProjectSettings, RunSettings

if TYPE_CHECKING:
    from pathlib import Path

    from dsguard.settings.places import TomlPath


class Mistake(Struct, frozen=True):
    """Something in the settings that cannot be used.

    ``message`` is a clause without a full stop, ``help`` a way out (may be empty).
    """

    at: Location
    message: str
    help: str = ""


class SettingsError(Exception):
    """Settings that cannot be used, with all their mistakes."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        super().__init__("; ".join(mistake.message for mistake in mistakes))
        self.mistakes = mistakes


class Project(Struct, frozen=True):
    """The settings of a project and where they stand.

    ``root`` is the folder of the settings, from which their paths are seen; ``source`` their file,
    None where there is none. ``table`` is where in it they begin. ``job`` is the index of the job
    whose own settings stand in place of the project's.
    """

    root: Path
    settings: ProjectSettings = field(default_factory=ProjectSettings)
    source: Source | None = None
    table: TomlPath = ()
    job: int | None = None

    def of_job(self, index: int) -> Project:
        """The project as a job sees it, whose own settings win."""
        job = self.settings.job[index]
        own = {one.name: getattr(job, one.name) for one in dataclasses.fields(RunSettings)}
        given = {name: value for name, value in own.items() if value is not None}
        return replace(self, settings=dataclasses.replace(self.settings, **given), job=index)

    def place(self, *path: str | int) -> Location:
        """Where a key stands; the start of the file where it is not given."""
        if self.job is not None:
            job = self.settings.job[self.job]
            if path and getattr(job, str(path[0]).replace("-", "_"), None) is not None:
                path = ("job", self.job, *path)
        # Most projects have no settings, and nothing of TOML to read.
        from dsguard.settings.places import place_of

        source = self.source or Source("<settings>", "", is_file=False)
        return Location(source, place_of(source.text, (*self.table, *path)))

    def mistake(self, message: str, *path: str | int, help: str = "") -> SettingsError:
        """The error of a value that cannot be used."""
        return SettingsError([Mistake(self.place(*path), message, help)])
