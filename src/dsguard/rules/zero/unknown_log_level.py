"""A log level that does not exist; see unknown_log_level.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.values import unread, written
from dsguard.frontends.base import AUTO
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.rules.zero._settings import place, release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEY = "log_level"
_LEVELS = ("debug", "info", "warning", "error", "critical")
"""In any case (``log_levels`` in deepspeed/utils/logging.py)."""
_SINCE = Version("0.19.3")
"""The release that brought the key."""


@rule(
    code="DSG325",
    slug="unknown-log-level",
    summary="a log_level that DeepSpeed does not know",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="deepspeed.initialize raises ValueError: ... is not one of the valid logging levels",
    when=(Written(_KEY),),
)
def unknown_log_level(case: Case, report: Reporter) -> Iterator[Finding]:
    """The level is looked up when the engine starts."""
    level = written(case.document, _KEY)
    if level is None or not isinstance(level.value, str) or release(case) < _SINCE:
        return
    if level.value.lower() in _LEVELS or level.value == AUTO or unread(case.document, _KEY):
        return
    yield report(
        place(case, _KEY),
        f'log_level "{level.value}" is none of DeepSpeed\'s levels',
        Consequence.LATE,
        help=f"write one of {', '.join(_LEVELS)}",
    )
