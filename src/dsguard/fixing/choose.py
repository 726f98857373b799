"""Which fixes of one text go together, and the text with them applied."""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import TYPE_CHECKING

from dsguard.model.finding import Edit, Finding, Fix, Safety

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dsguard.model.source import Source


def is_applicable(finding: Finding, source: Source, *, unsafe: bool) -> bool:
    """Whether a finding's fix can be applied to a text without asking."""
    fix = finding.fix
    if fix is None or not fix.edits or finding.location.source is not source:
        return False
    return fix.safety is Safety.SAFE or (unsafe and fix.safety is Safety.UNSAFE)


def together(findings: Iterable[Finding]) -> list[Finding]:
    """The findings whose fixes do not meet, first come first served.

    Several checks of one config offer the same fix; it is taken once. Edits that touch count as
    meeting: what one leaves behind may be what the other looks at. So do two fixes that write the
    same key, from different places. The rest has its turn in the next pass, on the text that this
    one leaves.
    """
    chosen: list[Finding] = []
    taken: list[tuple[int, int]] = []
    written: set[str] = set()
    for finding in findings:
        assert finding.fix is not None
        if any(_meets(edit, taken) for edit in finding.fix.edits):
            continue
        if not written.isdisjoint(finding.fix.pointers):
            continue
        written.update(finding.fix.pointers)
        for edit in finding.fix.edits:
            insort(taken, (edit.start, edit.end))
        chosen.append(finding)
    return chosen


def apply(text: str, fixes: Sequence[Fix]) -> str:
    """The text with all edits of some fixes, which do not meet."""
    edits = sorted((edit for fix in fixes for edit in fix.edits), key=lambda edit: edit.start)
    parts: list[str] = []
    at = 0
    for edit in edits:
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def _meets(edit: Edit, taken: Sequence[tuple[int, int]]) -> bool:
    """Whether an edit meets one of those in order; no two of them overlap."""
    after = bisect_right(taken, edit.end, key=lambda span: span[0])
    return after > 0 and taken[after - 1][1] >= edit.start
