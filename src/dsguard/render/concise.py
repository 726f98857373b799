"""The report as one line per finding, for editors, ``grep`` and ``sort``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.render.characters import sentence
from dsguard.render.order import findings_in_order
from dsguard.render.wording import place

if TYPE_CHECKING:
    from dsguard.model.report import Report


def render_concise(report: Report, *, unicode: bool = True) -> str:
    """``path:line:column: severity[code] rule: message`` per finding, then the failures.

    A finding in the launch command has ``<launch command>`` for its path; its column counts
    in the command as the JSON report gives it.
    """
    lines = [
        f"{place(finding.location)}: {finding.severity.value}[{finding.code}]"
        f" {finding.rule}: {finding.message}"
        for _, finding in findings_in_order(report)
    ]
    lines += [
        ": ".join(filter(None, (failure.subject, "error", failure.message)))
        for failure in report.failures
    ]
    return "".join(sentence(line, unicode=unicode) + "\n" for line in lines)
