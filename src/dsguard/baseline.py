"""A baseline: the findings that a project has accepted for now, so that only new ones count.

Entries are keyed by file, rule and JSON pointer, so that they survive edits of other lines. Files
are seen from the folder of the baseline, with forward slashes on every system.
"""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dsguard.model.finding import Consequence, Finding
from dsguard.model.rule import Reporter
from dsguard.model.source import Location, Source, Span
from dsguard.paths import below, file_of_finding
from dsguard.rules import CRASH, find_rule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from dsguard.model.report import Check

DEFAULT_NAME = "dsguard-baseline.json"
"""Where a baseline lies if nobody says otherwise."""

STALE = "stale-baseline"


class BaselineError(Exception):
    """A baseline that cannot be used; ``message`` is a clause, ``help`` a way out."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.help = help


class Entry(NamedTuple):
    """An accepted finding. ``pointer`` is empty for what is in no document or all of it."""

    file: str
    rule: str
    pointer: str


class _EntryV1(Struct, forbid_unknown_fields=True):
    file: str
    rule: str
    pointer: str


class _BaselineV1(Struct, forbid_unknown_fields=True):
    version: Literal[1]
    findings: list[_EntryV1]


class Baseline(Struct, frozen=True):
    """The entries of a baseline; ``folder`` is where their files are seen from.

    ``source`` is the file as it was read, for what is to be said about its entries.
    """

    entries: frozenset[Entry]
    folder: Path
    source: Source

    @property
    def text(self) -> str:
        """The baseline as a file holds it: sorted, one entry a line, so that merges are easy."""
        lines = [_json(entry._asdict()) for entry in sorted(self.entries)]
        body = ",\n  ".join(lines)
        listed = f"[\n  {body}\n ]" if lines else "[]"
        return f'{{"version": 1, "findings": {listed}}}\n'


def read_baseline(source: Source, folder: Path) -> Baseline:
    """The baseline that a text holds.

    Raises:
        BaselineError: it is none, or of a version that this dsguard does not know.
    """
    try:
        given = msgspec.convert(json.loads(source.text), _BaselineV1)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:  # no ValueError in 0.19
        raise BaselineError(
            f"{source.name} is no baseline of dsguard ({error})",
            "write a new one with dsguard baseline create --force",
        ) from None
    entries = (Entry(one.file, one.rule, one.pointer) for one in given.findings)
    return Baseline(frozenset(entries), folder, source)


def entry_of(check: Check, finding: Finding, folder: Path) -> Entry:
    """The entry that a finding would be accepted by."""
    file = file_of_finding(check, finding)
    name = "" if file is None else file if _is_no_path(file) else below(folder, file)
    return Entry(name, finding.rule, finding.location.pointer or "")


def entries_of(checks: Iterable[Check], folder: Path, locked: Collection[str] = ()) -> set[Entry]:
    """The entries that accept all findings but those of locked rules."""
    return {
        entry_of(check, finding, folder)
        for check in checks
        for finding in check.findings
        if not _counts_always(finding.rule, locked)
    }


def apply_baseline(
    checks: Sequence[Check], baseline: Baseline, *, locked: Collection[str] = ()
) -> tuple[list[Check], int]:
    """The checks without accepted findings, and how many those are; stale entries are found."""
    found = entries_of(checks, baseline.folder)
    kept: list[Check] = []
    for check in checks:
        findings = [
            finding
            for finding in check.findings
            if _counts_always(finding.rule, locked)
            or entry_of(check, finding, baseline.folder) not in baseline.entries
        ]
        kept.append(replace(check, findings=tuple(findings)))
    count = sum(len(check.findings) for check in checks) - sum(len(one.findings) for one in kept)
    gone = stale_entries(checks, baseline, found)
    places = _places(baseline.source) if gone else {}
    stale = [_stale(entry, places.get(entry), baseline.source) for entry in gone]
    if kept and stale:
        kept[0] = replace(kept[0], findings=(*kept[0].findings, *stale))
    return kept, count


def stale_entries(
    checks: Sequence[Check], baseline: Baseline, found: Collection[Entry] | None = None
) -> list[Entry]:
    """The entries that accept nothing any more.

    These are entries of a file that was checked, by rules that knew enough to be sure that there
    is nothing, of a file that does not exist, and of a rule that does not exist.
    """
    found = entries_of(checks, baseline.folder) if found is None else found
    checked: dict[str, list[Check]] = {}
    for check in checks:
        if check.config is not None:
            checked.setdefault(below(baseline.folder, check.config), []).append(check)
    return [
        entry
        for entry in sorted(baseline.entries - set(found))
        if _is_gone(entry, baseline.folder)
        or (
            entry.file in checked
            and all(entry.rule in check.judged for check in checked[entry.file])
        )
    ]


def _is_gone(entry: Entry, folder: Path) -> bool:
    if find_rule(entry.rule) is None:
        return True
    if not entry.file or _is_no_path(entry.file):
        return False
    try:
        (folder / entry.file).stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return True
    except OSError as error:  # no file has such a name, or who knows
        return error.errno in (errno.ENAMETOOLONG, errno.ELOOP)
    return False


def _stale(entry: Entry, place: Span | None, source: Source) -> Finding:
    rule = find_rule(STALE)
    assert rule is not None
    message = f"{entry.rule} finds nothing any more at {entry.pointer or 'all'} in {entry.file}"
    if find_rule(entry.rule) is None:
        message = f"there is no rule {entry.rule}"
    at = Location(source, place or Span(0, min(1, len(source.text))))
    help = "run dsguard baseline prune"
    return Reporter(rule.meta)(at, message, Consequence.NOTE, help=help)


def _places(source: Source) -> dict[Entry, Span]:
    """Where entries stand: each on a line of its own, unless the file was written by hand."""
    places: dict[Entry, Span] = {}
    start = 0
    for line in source.text.splitlines(keepends=True):
        begin = start + len(line) - len(line.lstrip())
        start += len(line)
        text = line.strip().rstrip(",")
        try:
            given = msgspec.convert(json.loads(text), _EntryV1)
        except (ValueError, RecursionError, msgspec.ValidationError):
            continue
        entry = Entry(given.file, given.rule, given.pointer)
        places.setdefault(entry, Span(begin, begin + len(text)))
    return places


def _json(data: str | dict[str, str]) -> str:
    """JSON that UTF-8 can hold: a file name need not be text."""
    text = json.dumps(data, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(data)
    return text


def _counts_always(rule: str, locked: Collection[str]) -> bool:
    return rule in locked or rule in (CRASH, STALE)


def _is_no_path(name: str) -> bool:
    return name.startswith("<") and name.endswith(">")
