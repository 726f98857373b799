"""How many findings are told.

Each of them repeats names of its file, and a file may hold many findings under one long name: all
of them would take as much as their number times its length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dsguard.model.finding import Finding


class Allowance:
    """Room for so many findings, and for so many characters of them; one always fits."""

    def __init__(self, findings: int, characters: int) -> None:
        self._findings = findings
        self._characters = characters
        self._used = False

    def take(self, findings: Iterable[Finding]) -> tuple[list[Finding], bool]:
        """The first findings, as many as there is room for, and whether there are more.

        One more than there is room for is asked of an iterator.
        """
        taken: list[Finding] = []
        for finding in findings:
            self._findings -= 1
            self._characters -= _length(finding)
            if self._used and (self._findings < 0 or self._characters < 0):
                return taken, True
            self._used = True
            taken.append(finding)
        return taken, False


def _length(finding: Finding) -> int:
    """About how many characters it takes to tell a finding."""
    texts = [finding.message, finding.help, finding.location.pointer or ""]
    if finding.fix is not None:
        texts += [finding.fix.title, *finding.fix.pointers]
        texts += [edit.text for edit in finding.fix.edits]
    length = sum(map(len, texts))
    for because in finding.because:
        at = because.origin.location
        length += len(because.fact)
        if isinstance(because.value, str):
            length += len(because.value)
        elif at is not None and isinstance(because.value, list | dict):
            length += at.span.end - at.span.start
        if at is not None:
            length += len(at.pointer or "")
    return length
