"""What settings may say; the keys are written with dashes, as on the command line."""

from __future__ import annotations

from datetime import date
from enum import Enum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from dsguard.model.finding import Severity


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


Count = Annotated[int, Field(strict=True, ge=1)]


class _Table(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        validate_by_name=False,
        alias_generator=lambda name: name.replace("_", "-"),
    )


class RunSettings(_Table):
    """What a run is judged by; an option of the same name on the command line wins.

    ``hostfile`` is seen from the folder of the settings.
    """

    target: str | None = None
    front_end: FrontEndChoice | None = None
    world_size: Count | None = None
    gpus_per_node: Count | None = None
    hostfile: str | None = None


class JobSettings(RunSettings):
    """``[[tool.dsguard.job]]``: a config together with the command that starts it.

    ``config`` and the paths in ``launch`` are seen from the folder of the settings. Without
    ``config`` the launch names it.
    """

    name: str = Field(min_length=1)
    config: str | None = Field(default=None, min_length=1)
    launch: str | list[str] | None = None


class IgnoreAtSettings(_Table):
    """``[[tool.dsguard.ignore-at]]``: a rule that is accepted at a place."""

    rule: str
    file: str = Field(min_length=1)
    pointer: str = ""
    reason: str = Field(min_length=1)
    expires: date | None = None

    @field_validator("pointer")
    @classmethod
    def _is_pointer(cls, pointer: str) -> str:
        if pointer and not pointer.startswith("/"):
            raise ValueError("must be a JSON pointer such as /optimizer/params/lr")
        return pointer


class ProjectSettings(RunSettings):
    """All settings of a project.

    ``exclude`` holds patterns as in a .gitignore file, seen from the folder of the settings.
    ``severity`` gives rules another severity than their own.
    """

    required_version: str | None = None
    select: list[str] = []
    ignore: list[str] = []
    locked: list[str] = []
    severity: dict[str, Severity] = {}
    fail_on: FailOn | None = None
    exclude: list[str] = []
    baseline: str | None = Field(default=None, min_length=1)
    job: list[JobSettings] = []
    ignore_at: list[IgnoreAtSettings] = []
