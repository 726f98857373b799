"""Suppressions that a setting makes, for files that have no room for comments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from dsguard.paths import Globs, file_of_finding

if TYPE_CHECKING:
    from datetime import date

    from dsguard.model.finding import Finding
    from dsguard.model.report import Check
    from dsguard.model.source import Location


class IgnoreAt(Struct, frozen=True):
    """``[[tool.dsguard.ignore-at]]``: a rule that is accepted at a place, with the reason.

    ``pointer`` (RFC 6901) means the value there and all that stands in it; empty for the whole
    file. After the day ``expires`` it has no effect. ``at`` is where the settings say it.
    """

    rule: str
    file: str
    files: Globs
    reason: str
    at: Location
    pointer: str = ""
    expires: date | None = None

    def has_expired(self, today: date) -> bool:
        """Whether its last day is over."""
        return self.expires is not None and today > self.expires

    def covers_file(self, name: str | None) -> bool:
        """Whether it speaks about a file."""
        return name is not None and self.files.match(name)

    def covers(self, check: Check, finding: Finding) -> bool:
        """Whether it means a finding, its rule aside."""
        if not self.covers_file(file_of_finding(check, finding)):
            return False
        at = finding.location.pointer or ""
        return not self.pointer or at == self.pointer or at.startswith(f"{self.pointer}/")
