"""Remarks to dsguard in comments: ``# dsguard: ignore[rule-name] why``."""

from __future__ import annotations

from msgspec import Struct

from dsguard.model.source import Location, Source, Span


class NamedRule(Struct, frozen=True):
    """A rule as a directive names it, and where."""

    name: str
    span: Span


class Directive(Struct, frozen=True):
    """One directive.

    ``span`` covers it without the sign of the comment. ``names`` are the rules it names; where
    ``fault`` is not empty it names none and says why. ``reason`` may be empty. ``first_line`` to
    ``last_line`` are the lines whose findings it means.
    """

    source: Source
    span: Span
    names: tuple[NamedRule, ...]
    reason: str
    first_line: int
    last_line: int
    fault: str = ""

    def covers(self, location: Location) -> bool:
        """Whether something stands on the lines that are meant."""
        same = location.source is self.source or (
            # One file is read once for each of the launches that name it.
            location.source.is_file
            and self.source.is_file
            and location.source.name == self.source.name
        )
        line = location.source.position(location.span.start).line
        return same and self.first_line <= line <= self.last_line

    def locate(self, span: Span) -> Location:
        """A stretch of the directive's file."""
        return Location(self.source, span)
