"""The answer to one call: what was checked, what will run, what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dsguard.model.fact import FactName, Facts
from dsguard.model.finding import Finding, Severity


class TargetOrigin(str, Enum):
    """Why findings are judged by this release of DeepSpeed."""

    OPTION = "option"
    INSTALLED = "installed"
    PINNED = "pinned"
    NEWEST_KNOWN = "newest known"


@dataclass(frozen=True)
class Target:
    """The DeepSpeed release that the config is judged by.

    ``file`` is the name of the file that pins it, empty for any other origin.
    """

    version: str
    origin: TargetOrigin
    file: str = ""


@dataclass(frozen=True)
class SkippedRule:
    """A rule that could not be judged, because facts it needs are unknown."""

    rule: str
    missing: tuple[FactName, ...]
    reason: str


@dataclass(frozen=True)
class Check:
    """One (config, launch) pair.

    ``config`` is the file's name as given, None where the launch names no readable config;
    ``launch`` the launch command as one line, None where none was given.
    """

    config: str | None
    launch: str | None
    target: Target
    facts: Facts
    findings: tuple[Finding, ...] = ()
    skipped: tuple[SkippedRule, ...] = ()


@dataclass(frozen=True)
class Failure:
    """Why the answer is incomplete: an input that could not be read, or nothing to check.

    ``subject`` is the path or word it is about; ``message`` a clause; ``help`` a way out.
    """

    subject: str
    message: str
    help: str = ""


@dataclass(frozen=True)
class Report:
    """Everything one call found out.

    ``failures`` and findings of the rule ``internal-error`` make the answer incomplete.
    """

    checks: tuple[Check, ...]
    failures: tuple[Failure, ...] = ()
    crashed: bool = False
    suppressed: int = 0
    baselined: int = 0

    @property
    def findings(self) -> list[tuple[int, Finding]]:
        """All findings with the index of their check."""
        return [(i, f) for i, check in enumerate(self.checks) for f in check.findings]

    @property
    def complete(self) -> bool:
        """Whether every input was read and every rule ran."""
        return not self.failures and not self.crashed

    def count(self, severity: Severity) -> int:
        """How many findings have this severity."""
        return sum(finding.severity is severity for _, finding in self.findings)
