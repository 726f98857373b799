"""What settings may say; the keys are written with dashes, as on the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from dsguard.model.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Callable


class FailOn(str, Enum):
    """From which severity upwards a run exits with 1."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    NEVER = "never"


class FrontEndChoice(str, Enum):
    """Who hands the config to DeepSpeed; ``auto`` reads it from the launch."""

    AUTO = "auto"
    PLAIN = "plain"
    TRANSFORMERS = "transformers"
    ACCELERATE = "accelerate"
    LIGHTNING = "lightning"


class _Limit:
    """A limit in the terms of pydantic's core schema, for annotations that need no pydantic."""

    def __init__(self, **limits: Any) -> None:
        self._limits = limits

    def __get_pydantic_core_schema__(
        self, source: Any, handler: Callable[[Any], dict[str, Any]]
    ) -> dict[str, Any]:
        return {**handler(source), **self._limits}


Count = Annotated[int, _Limit(strict=True, ge=1)]
Text = Annotated[str, _Limit(min_length=1)]
Pointer = Annotated[str, _Limit(pattern="^(/|$)")]


def key_of(name: str) -> str:
    """How a setting is written."""
    return name.replace("_", "-")


@dataclass(kw_only=True, eq=False)
class RunSettings:
    """What a run is judged by; an option of the same name on the command line wins.

    ``hostfile`` is seen from the folder of the settings.
    """

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid", "alias_generator": key_of}

    target: str | None = None
    front_end: FrontEndChoice | None = None
    world_size: Count | None = None
    gpus_per_node: Count | None = None
    hostfile: str | None = None


@dataclass(kw_only=True, eq=False)
class JobSettings(RunSettings):
    """``[[tool.dsguard.job]]``: a config together with the command that starts it.

    ``config`` and the paths in ``launch`` are seen from the folder of the settings. Without
    ``config`` the launch names it.
    """

    name: Text
    config: Text | None = None
    launch: str | list[str] | None = None


@dataclass(kw_only=True, eq=False)
class IgnoreAtSettings:
    """``[[tool.dsguard.ignore-at]]``: a rule that is accepted at a place."""

    __pydantic_config__: ClassVar[Any] = RunSettings.__pydantic_config__

    rule: str
    file: Text
    pointer: Pointer = ""
    reason: Text
    expires: date | None = None


@dataclass(kw_only=True, eq=False)
class ProjectSettings(RunSettings):
    """All settings of a project.

    ``exclude`` holds patterns as in a .gitignore file, seen from the folder of the settings.
    ``severity`` gives rules another severity than their own.
    """

    required_version: str | None = None
    select: list[str] = field(default_factory=list)
    ignore: list[str] = field(default_factory=list)
    locked: list[str] = field(default_factory=list)
    severity: dict[str, Severity] = field(default_factory=dict)
    fail_on: FailOn | None = None
    exclude: list[str] = field(default_factory=list)
    baseline: Text | None = None
    job: list[JobSettings] = field(default_factory=list)
    ignore_at: list[IgnoreAtSettings] = field(default_factory=list)
