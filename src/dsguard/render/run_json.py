"""A recorded run as JSON, version 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.records.schema import OVERVIEW
from dsguard.render.values import printable_json

if TYPE_CHECKING:
    from dsguard.records.report import Overview


def render_run_json(told: Overview) -> str:
    """The overview as JSON, indented by two spaces."""
    return printable_json(OVERVIEW.dump_json(told, indent=2).decode("utf-8")) + "\n"
