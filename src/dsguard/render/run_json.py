"""A recorded run as JSON, version 1."""

from __future__ import annotations

from dsguard.records.report import Overview
from dsguard.records.schema import OVERVIEW
from dsguard.render.values import printable_json


def render_run_json(told: Overview) -> str:
    """The overview as JSON, indented by two spaces."""
    return printable_json(OVERVIEW.dump_json(told, indent=2).decode("utf-8")) + "\n"
