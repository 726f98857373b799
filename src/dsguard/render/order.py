"""The order of findings and the file they stand in: the same in every output format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.finding import Finding
    from dsguard.model.report import Check, Report


def findings_in_order(report: Report) -> list[tuple[int, Finding]]:
    """All findings with the index of their check: by check, then config, other files, launch.

    Within one source they stand in the order of its text; at one place the worse one first.
    """

    def key(entry: tuple[int, Finding]) -> tuple[int, bool, bool, str, int, int, str, str]:
        index, finding = entry
        source, span, _ = finding.location
        return (
            index,
            source.name != report.checks[index].config,
            not source.is_file,
            source.name,
            span.start,
            -finding.severity.rank,
            finding.code,
            finding.message,
        )

    return sorted(report.findings, key=key)


def distinct_findings(report: Report) -> Iterator[tuple[Check, Finding]]:
    """The findings in order with their checks, what several checks say of one place only once.

    For outputs that do not tell checks apart: one config under two launches is still one file.
    """
    seen = set[tuple[str, Span, str, str]]()
    for index, finding in findings_in_order(report):
        at = finding.location
        key = (at.source.name, at.span, finding.rule, finding.message)
        if key not in seen:
            seen.add(key)
            yield report.checks[index], finding


def file_of(source: Source, check: Check) -> str | None:
    """The file that a source is, or None for words typed after ``--``.

    A config from standard input is no file that an editor could open, but it is the file
    that was checked.
    """
    return source.name if source.is_file or source.name == check.config else None
