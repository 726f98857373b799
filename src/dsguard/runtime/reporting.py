"""Saying what was found: once of each kind, on one rank, in one of three manners."""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from dsguard.model.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Callable

OnViolation: TypeAlias = Literal["warn", "raise", "record"]

LOGGER = logging.getLogger("dsguard.guard")
_LEVELS = {
    Severity.ERROR: logging.ERROR,
    Severity.WARNING: logging.WARNING,
    Severity.INFO: logging.INFO,
}


class GuardViolation(RuntimeError):
    """The running engine does something else than was asked for; ``finding`` says what."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(written(finding))
        self.finding = finding


Kind: TypeAlias = tuple[Any, ...]


class Voice(Protocol):
    """Decides which rank says a finding."""

    @property
    def waits(self) -> bool:
        """Whether :meth:`settle` has anything to do."""

    def say(self, kind: Kind, speak: Callable[[str], None]) -> None:
        """Call ``speak`` with a prefix, now, at :meth:`settle`, or not at all."""

    def settle(self) -> None:
        """Say what has waited for another rank to say it."""


class SingleVoice:
    """The voice of a run with one rank."""

    waits = False

    def say(self, kind: Kind, speak: Callable[[str], None]) -> None:
        """Say it now."""
        speak("")

    def settle(self) -> None:
        """Nothing ever waits."""


class Notebook:
    """The findings of one guard.

    A kind of finding (rule, moment, severity, facts it rests on) is written and said at its
    first occurrence and counted after that, so that a long run keeps a short notebook.
    """

    def __init__(self, on_violation: OnViolation) -> None:
        self.findings: list[Finding] = []
        self.counts: Counter[str] = Counter()
        self.voice: Voice = SingleVoice()
        self._on_violation = on_violation
        self._kinds: set[Kind] = set()
        self._due: Finding | None = None

    def write(self, finding: Finding, moment: str) -> None:
        """Take a finding down; say it if it is the first of its kind."""
        self.counts[finding.rule] += 1
        facts = tuple(because.fact for because in finding.because)
        kind = (finding.rule, moment, finding.severity.value, facts)
        if kind in self._kinds:
            return
        self._kinds.add(kind)
        self.findings.append(finding)
        if self._on_violation == "record":
            return
        if self._on_violation == "raise" and finding.severity is Severity.ERROR:
            self._due = self._due or finding
            return
        self.voice.say(kind, lambda prefix: _log(finding, prefix))

    @property
    def waits(self) -> bool:
        """Whether something is said at the next optimizer step."""
        return self.voice.waits

    def settle(self) -> None:
        """An optimizer step has passed: say what no other rank has said."""
        self.voice.settle()

    def raise_if_due(self) -> None:
        """Raise the violation that waits.

        Raises:
            GuardViolation: an error was found since the last call.
        """
        if self._due is not None:
            finding, self._due = self._due, None
            raise GuardViolation(finding)


def _log(finding: Finding, prefix: str) -> None:
    # A handler or filter of the script may raise, and so does one whose stream was closed.
    with suppress(Exception):
        LOGGER.log(_LEVELS[finding.severity], "%s%s", prefix, written(finding))


def written(finding: Finding) -> str:
    """A finding as plain text: the message, its place, the reasons, the way out."""
    source, span, _ = finding.location
    lines = [f"{finding.severity.value}[{finding.code}]: {finding.message}  ({finding.rule})"]
    if source.is_file:
        line, column = source.position(span.start)
        lines.append(f"  --> {source.name}:{line}:{column}")
        lines.append(f"      {source.line(line).strip()}")
    elif source.text or not source.name.startswith("<"):
        lines.append(f"  --> {source.name}")
    for because in finding.because:
        said = because.origin.describe()
        place = because.origin.location
        if place is not None and because.origin.argument is not None and place.source.is_file:
            line, column = place.source.position(place.span.start)
            said += f", {place.source.name}:{line}"
        lines.append(f"  because {because.fact} is {because.value} ({said})")
    if finding.help:
        lines.append(f"  help: {finding.help}")
    return "\n".join(lines)
