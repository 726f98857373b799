"""The answer to one call: what was checked, what will run, what is wrong."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct

from dsguard.model.fact import FactName, Unknown

if TYPE_CHECKING:
    from dsguard.model.directive import Directive
    from dsguard.model.fact import Facts
    from dsguard.model.finding import Finding, Safety, Severity


_SAID_BY_CONFIG: tuple[FactName, ...] = (
    "zero_stage",
    "precision",
    "gradient_clipping",
    "optimizer",
)
"""Facts that mostly come from a config, whatever it says and whoever fills it."""


class TargetOrigin(str, Enum):
    """Why findings are judged by this release of DeepSpeed."""

    OPTION = "option"
    INSTALLED = "installed"
    PINNED = "pinned"
    NEWEST_KNOWN = "newest known"


class Target(Struct, frozen=True):
    """The DeepSpeed release that the config is judged by.

    ``file`` is the name of the file that pins it, empty for any other origin.
    """

    version: str
    origin: TargetOrigin
    file: str = ""


class SkippedRule(Struct, frozen=True):
    """A rule that could not be judged, because facts it needs are unknown."""

    rule: str
    missing: tuple[FactName, ...]
    reason: str


class Check(Struct, frozen=True):
    """One (config, launch) pair.

    ``config`` is the file's name as given, None where the launch names no readable config;
    ``launch`` the launch command as one line, None where none was given. ``directives`` are those
    of all files that were read. ``judged`` are the rules that knew all they asked for, so that
    their silence means that there is nothing to find. ``editable`` says that the config is a file
    of its own, or standard input, so that fixes can be applied to it. ``untold`` are the rules that
    find more than the check holds.
    """

    config: str | None
    launch: str | None
    target: Target
    facts: Facts
    findings: tuple[Finding, ...] = ()
    skipped: tuple[SkippedRule, ...] = ()
    directives: tuple[Directive, ...] = ()
    judged: frozenset[str] = frozenset()
    editable: bool = False
    untold: frozenset[str] = frozenset()

    @property
    def blind(self) -> str:
        """Why nothing that a config says is known; empty where something is."""
        facts = [self.facts.get(name) for name in _SAID_BY_CONFIG]
        reasons = {fact.reason if isinstance(fact, Unknown) else "" for fact in facts}
        return reasons.pop() if len(reasons) == 1 else ""

    def fixable(self, safety: Safety) -> list[Finding]:
        """The findings whose fix is of this kind and can be applied to the config."""
        return [
            finding
            for finding in self.findings
            if self.editable
            and finding.location.source.name == self.config
            and finding.fix is not None
            and finding.fix.edits
            and finding.fix.safety is safety
        ]


class Failure(Struct, frozen=True):
    """Why the answer is incomplete: an input that could not be read, or nothing to check.

    ``subject`` is the path or word it is about; ``message`` a clause; ``help`` a way out.
    """

    subject: str
    message: str
    help: str = ""


class Report(Struct, frozen=True):
    """Everything one call found out.

    ``failures`` and findings of the rule ``internal-error`` make the answer incomplete; where it is
    ``strict``, so do rules that were skipped.
    ``suppressed`` and ``baselined`` count the findings that are left out because a comment, a
    setting or the baseline says so; ``fixed`` those that are gone because their fix was applied.
    """

    checks: tuple[Check, ...]
    failures: tuple[Failure, ...] = ()
    crashed: bool = False
    suppressed: int = 0
    baselined: int = 0
    fixed: int = 0
    strict: bool = False

    @property
    def findings(self) -> list[tuple[int, Finding]]:
        """All findings with the index of their check."""
        return [(i, f) for i, check in enumerate(self.checks) for f in check.findings]

    @property
    def complete(self) -> bool:
        """Whether every input was read and no rule crashed; if ``strict``, whether all ran."""
        skipped = self.strict and any(check.skipped for check in self.checks)
        return not self.failures and not self.crashed and not skipped

    def count(self, severity: Severity) -> int:
        """How many findings have this severity."""
        return sum(finding.severity is severity for _, finding in self.findings)
