"""What a project makes of the findings: which count, how bad they are, which it has accepted."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from dsguard.baseline import Baseline, apply_baseline
from dsguard.model.report import Check, Failure, Report
from dsguard.rules import CRASH, all_rules
from dsguard.suppression.apply import suppress

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dsguard.facts.case import Case
    from dsguard.model.finding import Finding, Severity
    from dsguard.model.rule import Rule
    from dsguard.suppression.ignore_at import IgnoreAt


class Policy(Struct, frozen=True):
    """What stands between the findings of the rules and the report.

    ``rules`` are the rules that run. ``severities`` replaces those of some rules, by slug.
    ``locked`` are the slugs of rules that nothing may hide. ``today`` decides what has expired.
    """

    rules: Sequence[Rule[Case]] = field(default_factory=all_rules)
    severities: Mapping[str, Severity] = field(default_factory=dict)
    locked: frozenset[str] = frozenset()
    ignore_at: tuple[IgnoreAt, ...] = ()
    baseline: Baseline | None = None
    today: date = field(default_factory=date.today)


def make_report(
    checks: Sequence[Check], policy: Policy, failures: Sequence[Failure] = ()
) -> Report:
    """The report on some checks: findings suppressed, weighed and compared with the baseline."""
    crashed = any(finding.rule == CRASH for one in checks for finding in one.findings)
    kept, suppressed = suppress(checks, policy.ignore_at, locked=policy.locked, today=policy.today)
    baselined = 0
    if policy.baseline is not None:
        kept, baselined = apply_baseline(kept, policy.baseline, locked=policy.locked)
    running = {rule.meta.slug for rule in policy.rules}
    weighed = [
        replace(check, findings=tuple(_weighed(check.findings, running, policy.severities)))
        for check in kept
    ]
    failures = (*failures, *_untold(checks, running))
    return Report(tuple(weighed), failures, crashed, suppressed, baselined)


def _untold(checks: Sequence[Check], running: set[str]) -> Iterator[Failure]:
    """What to say of rules that find more than can be told, once for each config."""
    rules: dict[str, set[str]] = {}
    for check in checks:
        if more := check.untold & running:
            rules.setdefault(check.config or check.launch or "", set()).update(more)
    for subject, slugs in rules.items():
        message = f"there is more than can be told of {', '.join(sorted(slugs))}"
        yield Failure(subject, message, "mend what is told, and check it again")


def _weighed(
    findings: Sequence[Finding], running: set[str], severities: Mapping[str, Severity]
) -> list[Finding]:
    """The findings of rules that run, as bad as the project says."""
    return [
        replace(finding, severity=severities.get(finding.rule, finding.severity))
        for finding in findings
        if finding.rule in running or finding.rule == CRASH
    ]
