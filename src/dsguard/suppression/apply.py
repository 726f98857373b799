"""Leaving findings out, and saying which suppressions are of no use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dsguard.model.finding import Confidence, Consequence, Finding
from dsguard.model.rule import Reporter
from dsguard.rules import CRASH, did_you_mean, find_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from datetime import date

    from dsguard.model.directive import Directive, NamedRule
    from dsguard.model.report import Check
    from dsguard.model.source import Location
    from dsguard.suppression.ignore_at import IgnoreAt


class _Findings:
    """The findings of one check that are not left out, by the rule, the file and the line."""

    def __init__(self, check: Check) -> None:
        self.check = check
        self._all = check.findings
        self._gone: set[int] = set()
        self._places: dict[str, dict[str, list[tuple[int, int]]]] = {}
        for at, finding in enumerate(check.findings):
            source, span, _ = finding.location
            files = self._places.setdefault(finding.rule, {})
            files.setdefault(source.name, []).append((source.position(span.start).line, at))
        for files in self._places.values():
            for places in files.values():
                places.sort()

    @property
    def kept(self) -> list[Finding]:
        """Those that nothing has left out, in their order."""
        return [finding for at, finding in enumerate(self._all) if at not in self._gone]

    def leave_out(
        self,
        slug: str,
        covers: Callable[[Finding], bool],
        file: str | None = None,
        lines: tuple[int, int] | None = None,
    ) -> bool:
        """Leave out what a suppression covers, on some lines of a file; whether it covers any."""
        files = self._places.get(slug, {})
        used = False
        for name in files if file is None else (file,) if file in files else ():
            places = files[name]
            start, end = 0, len(places)
            if lines is not None:
                start = bisect_left(places, (lines[0], 0))
                end = bisect_left(places, (lines[1] + 1, 0))
            covered = [place for place in places[start:end] if covers(self._all[place[1]])]
            if covered:
                used = True
                self._gone.update(at for _, at in covered)
                places[start:end] = [p for p in places[start:end] if p[1] not in self._gone]
        return used


class _Suppression(ABC):
    """One rule that is left out somewhere; ``first`` is the check that its troubles belong to."""

    def __init__(self, name: str, at: Location, first: int = 0) -> None:
        self.name = name
        self.at = at
        self.first = first

    @abstractmethod
    def reached(self, checks: Sequence[Check]) -> list[int]:
        """The checks that read something that is meant."""

    @abstractmethod
    def leave_out(self, slug: str, index: int, findings: _Findings) -> bool:
        """Leave out the findings of a check that are meant; whether there were any."""


class _ByDirective(_Suppression):
    """By a comment. The same comment may mean other lines in another check of its file."""

    def __init__(self, name: NamedRule, directive: Directive, first: int) -> None:
        super().__init__(name.name, directive.locate(name.span), first)
        self.directives: dict[int, Directive] = {}

    def reached(self, checks: Sequence[Check]) -> list[int]:
        return list(self.directives)

    def leave_out(self, slug: str, index: int, findings: _Findings) -> bool:
        directive = self.directives[index]
        return findings.leave_out(
            slug,
            lambda finding: directive.covers(finding.location),
            directive.source.name,
            (directive.first_line, directive.last_line),
        )


class _BySetting(_Suppression):
    """By ``[[tool.dsguard.ignore-at]]``."""

    def __init__(self, setting: IgnoreAt) -> None:
        super().__init__(setting.rule, setting.at)
        self._setting = setting

    def reached(self, checks: Sequence[Check]) -> list[int]:
        return [
            index
            for index, check in enumerate(checks)
            if any(
                self._setting.covers_file(name)
                for name in {check.config, *(f.location.source.name for f in check.findings)}
            )
        ]

    def leave_out(self, slug: str, index: int, findings: _Findings) -> bool:
        return findings.leave_out(
            slug, lambda finding: self._setting.covers(findings.check, finding)
        )


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
    found = [_Findings(check) for check in checks]
    for one in suppressions:
        slug = _slug(one, locked, troubles)
        if slug is None:
            continue
        reached = one.reached(checks)
        used = False
        for index in reached:
            used |= one.leave_out(slug, index, found[index])
        if reached and not used and all(slug in checks[index].judged for index in reached):
            message = f"nothing is suppressed here: {slug} finds nothing"
            troubles.append(
                (one.first, _trouble("unused-suppression", one.at, message, "remove it"))
            )
    kept = [findings.kept for findings in found]
    count = sum(len(check.findings) for check in checks) - sum(map(len, kept))
    if checks:
        for index, trouble in troubles:
            kept[index].append(trouble)
    return [replace(c, findings=tuple(k)) for c, k in zip(checks, kept, strict=True)], count


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
