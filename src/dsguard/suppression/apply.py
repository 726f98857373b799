"""Leaving findings out, and saying which suppressions are of no use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dsguard.model.finding import Confidence, Consequence, Finding
from dsguard.model.rule import Reporter
from dsguard.rules import CRASH, did_you_mean, find_rule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import date

    from dsguard.model.directive import Directive, NamedRule
    from dsguard.model.report import Check
    from dsguard.model.source import Location
    from dsguard.suppression.ignore_at import IgnoreAt


class _Suppression(ABC):
    """One rule that is left out somewhere; ``first`` is the check that its troubles belong to."""

    def __init__(self, name: str, at: Location, first: int = 0) -> None:
        self.name = name
        self.at = at
        self.first = first

    @abstractmethod
    def reaches(self, index: int, check: Check) -> bool:
        """Whether something that this check reads is meant."""

    @abstractmethod
    def covers(self, index: int, check: Check, finding: Finding) -> bool:
        """Whether the place of a finding is meant."""


class _ByDirective(_Suppression):
    """By a comment. The same comment may mean other lines in another check of its file."""

    def __init__(self, name: NamedRule, directive: Directive, first: int) -> None:
        super().__init__(name.name, directive.locate(name.span), first)
        self.directives: dict[int, Directive] = {}

    def reaches(self, index: int, check: Check) -> bool:
        return index in self.directives

    def covers(self, index: int, check: Check, finding: Finding) -> bool:
        return self.directives[index].covers(finding.location)


class _BySetting(_Suppression):
    """By ``[[tool.dsguard.ignore-at]]``."""

    def __init__(self, setting: IgnoreAt) -> None:
        super().__init__(setting.rule, setting.at)
        self._setting = setting

    def reaches(self, index: int, check: Check) -> bool:
        files = {check.config, *(one.location.source.name for one in check.findings)}
        return any(self._setting.covers_file(name) for name in files)

    def covers(self, index: int, check: Check, finding: Finding) -> bool:
        return self._setting.covers(check, finding)


def suppress(
    checks: Sequence[Check],
    ignore_at: Sequence[IgnoreAt] = (),
    *,
    locked: Collection[str] = (),
    today: date,
) -> tuple[list[Check], int]:
    """The checks without the findings that are suppressed, and how many those are.

    What is wrong with a suppression is added as a finding: it names no rule, an unknown one or a
    locked one, has expired, or is unused. It is unused where nothing was left out and every check
    that it reaches knew enough to be sure of that.
    """
    troubles: list[tuple[int, Finding]] = []
    suppressions = [*_directives(checks, troubles), *_settings(ignore_at, troubles, today)]
    found = [list(check.findings) for check in checks]
    for one in suppressions:
        slug = _slug(one, locked, troubles)
        if slug is None:
            continue
        reached = [index for index, check in enumerate(checks) if one.reaches(index, check)]
        used = False
        for index in reached:
            kept = [
                finding
                for finding in found[index]
                if finding.rule != slug or not one.covers(index, checks[index], finding)
            ]
            used |= len(kept) < len(found[index])
            found[index] = kept
        if reached and not used and all(slug in checks[index].judged for index in reached):
            message = f"nothing is suppressed here: {slug} finds nothing"
            troubles.append(
                (one.first, _trouble("unused-suppression", one.at, message, "remove it"))
            )
    count = sum(len(check.findings) for check in checks) - sum(map(len, found))
    if checks:
        for index, trouble in troubles:
            found[index].append(trouble)
    kept_checks = zip(checks, found, strict=True)
    return [replace(check, findings=tuple(kept)) for check, kept in kept_checks], count


def _directives(checks: Sequence[Check], troubles: list[tuple[int, Finding]]) -> list[_Suppression]:
    """The suppressions by comments, each once for all checks that read it."""
    known: dict[tuple[str, int], _ByDirective] = {}
    faulty: set[tuple[str, int]] = set()
    for index, check in enumerate(checks):
        for directive in check.directives:
            place = (directive.source.name, directive.span.start)
            if directive.fault and place not in faulty:
                faulty.add(place)
                message = f"this suppresses nothing: {directive.fault}"
                help = "write dsguard: ignore[rule-name] and why"
                at = directive.locate(directive.span)
                troubles.append((index, _trouble("unnamed-suppression", at, message, help)))
            for name in directive.names:
                key = (directive.source.name, name.span.start)
                one = known.setdefault(key, _ByDirective(name, directive, index))
                one.directives[index] = directive
    return list(known.values())


def _settings(
    ignore_at: Sequence[IgnoreAt], troubles: list[tuple[int, Finding]], today: date
) -> Iterator[_Suppression]:
    for setting in ignore_at:
        if setting.has_expired(today):
            message = f"the suppression of {setting.rule} in {setting.file} expired after "
            message += f"{setting.expires} ({setting.reason})"
            help = "repair what it suppresses, or look at it again and give another date"
            troubles.append((0, _trouble("expired-suppression", setting.at, message, help)))
        else:
            yield _BySetting(setting)


def _slug(
    one: _Suppression, locked: Collection[str], troubles: list[tuple[int, Finding]]
) -> str | None:
    """The rule that is meant, None where it is unknown or locked."""
    rule = find_rule(one.name)
    if rule is None:
        help = did_you_mean(one.name)
        message = f"this suppresses nothing: no rule is called {one.name}"
        troubles.append((one.first, _trouble("unknown-suppression", one.at, message, help)))
        return None
    if rule.meta.slug in locked or rule.meta.slug == CRASH:
        message = f"{rule.meta.slug} is locked and cannot be suppressed"
        help = "repair what it finds; the settings say which rules are locked"
        troubles.append((one.first, _trouble("locked-suppression", one.at, message, help)))
        return None
    return rule.meta.slug


def _trouble(slug: str, at: Location, message: str, help: str) -> Finding:
    rule = find_rule(slug)
    assert rule is not None
    report = Reporter(rule.meta)
    return report(at, message, Consequence.NOTE, help=help, confidence=Confidence.HIGH)
