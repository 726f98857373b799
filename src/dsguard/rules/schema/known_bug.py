"""A config that shows a bug of the target release; see known_bug.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.known_bugs import KNOWN_BUGS
from dsguard.model.finding import Because, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.model.tree import Object
from dsguard.rules.conditions import Given
from dsguard.rules.schema._bug_facts import bug_facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG111",
    slug="known-bug",
    summary="a bug of the target release that shows with this config",
    severity=Severity.ERROR,
    since="0.1.0",
    when=(Given("document"),),
)
def known_bug(case: Case, report: Reporter) -> Iterator[Finding]:
    """Go through the table; a row with an unknown fact says nothing."""
    document = case.document
    if document is None or not isinstance(document.root, Object):
        return
    release = case.target.version
    bugs = [bug for bug in KNOWN_BUGS if release in bug.releases]
    known = bug_facts(case, bugs)
    values = {name: candidate.value for name, candidate in known.items()}
    for bug in bugs:
        if not bug.shows(release, values):
            continue
        at = document.locate(bug.pointer, "member")
        if at.pointer == "":
            at = document.start
        yield report(
            at,
            f"DeepSpeed {release} has a bug that this config meets: {bug.says} ({bug.source})",
            bug.consequence,
            severity=bug.severity,
            because=tuple(Because(n, known[n].value, known[n].origin) for n in bug.when),
            help=bug.way_out,
        )
