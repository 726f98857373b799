"""What ``guard`` was asked to do, after its arguments were understood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dsguard.model.source import Location
from dsguard.runtime.expectation import Expected
from dsguard.runtime.records import Record
from dsguard.runtime.reporting import Notebook
from dsguard.runtime.rule import GuardRule


@dataclass(frozen=True)
class Plan:
    """The arguments of :func:`dsguard.guard`, and the line that called it."""

    expect: Expected
    rules: tuple[GuardRule[Any], ...]
    notebook: Notebook
    compare_ranks: bool
    every: int | None
    record: Record
    dataloader: Any
    attached_at: Location
