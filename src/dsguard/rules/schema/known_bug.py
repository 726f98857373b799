"""A config that shows a bug of the target release; see known_bug.md."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from dsguard.facts.case import Case
from dsguard.facts.values import written
from dsguard.model.fact import Known
from dsguard.model.finding import Because, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.model.tree import Object
from dsguard.rules.schema._known_bugs import KNOWN_BUGS, KnownBug


@rule(
    code="DSG111",
    slug="known-bug",
    summary="a bug of the target release that shows with this config",
    severity=Severity.ERROR,
    since="0.1.0",
)
def known_bug(case: Case, report: Reporter) -> Iterator[Finding]:
    """Go through the table; a row with an unknown fact says nothing."""
    document = case.document
    if document is None or not isinstance(document.root, Object):
        return
    release = Version(case.target.version)
    for bug in KNOWN_BUGS:
        if release not in bug.releases or not _shows(bug, case):
            continue
        at = document.locate(bug.pointer, "member")
        if at.pointer == "":
            at = document.start
        facts = ((name, case.facts[name]) for name in bug.facts)
        yield report(
            at,
            f"DeepSpeed {release} has a bug that this config meets: {bug.says} ({bug.source})",
            bug.consequence,
            severity=bug.severity,
            because=tuple(Because.of(n, f) for n, f in facts if isinstance(f, Known)),
            help=bug.way_out,
        )


def _shows(bug: KnownBug, case: Case) -> bool:
    for name, holds in bug.facts.items():
        fact = case.facts[name]
        if not isinstance(fact, Known) or not holds(fact.value):
            return False
    for key, holds in bug.keys.items():
        candidate = written(case.document, key)
        if not holds(candidate.value if candidate is not None else None):
            return False
    return True
