"""What takes the records of one rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dsguard.model.record import HeaderLine, StepLine, SummaryLine
    from dsguard.runtime.gauges import Gauges


class Sink:
    """Takes the lines of one rank. Whatever it raises switches it off."""

    name: str
    """What a note calls it."""

    def open(self, header: HeaderLine, gauges: Gauges) -> None:
        """Get ready; the rank is known now."""

    def take(self, line: StepLine) -> None:
        """Take one optimizer step down."""
        raise NotImplementedError

    def close(self, summary: SummaryLine) -> None:
        """Nothing more comes."""

    def drop(self) -> None:
        """It was switched off."""
