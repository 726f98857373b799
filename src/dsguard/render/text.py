"""The report as a person reads it on a terminal.

Each finding has a heading, a picture of the place with a caret, the places that its numbers
come from, and a way out, in the manner of rustc and ruff. No line is ever wrapped, so that
``path:line:column`` stays whole; long source lines are cut around the caret instead.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.model.finding import Finding, Safety, Severity
from dsguard.model.report import Check, Failure, Report, Target, TargetOrigin
from dsguard.model.source import Location, Source
from dsguard.render.characters import ellipsis, sentence
from dsguard.render.line import Line, cells
from dsguard.render.order import findings_in_order
from dsguard.render.paint import FAINT, FRAME, GOOD, SEVERITY, paint
from dsguard.render.snippet import GAP, Mark, draw
from dsguard.render.wording import check_name, counted, failed, notes, place, reason
from dsguard.schema.history import NEWEST_KNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_UNLIMITED = 160
"""Where a source line is cut when there is no terminal: a config may be one line of 100 kB."""

_NARROWEST = 24

_NOTE = {"because": FRAME, "help": GOOD, "note": FAINT}

_TARGET_ORIGIN = {
    TargetOrigin.OPTION: "as --target says",
    TargetOrigin.INSTALLED: "installed here",
    TargetOrigin.PINNED: "pinned in {file}",
    TargetOrigin.NEWEST_KNOWN: "the newest that dsguard knows",
}


def render_text(
    report: Report,
    *,
    color: bool,
    unicode: bool,
    verbose: int = 0,
    quiet: bool = False,
    columns: int | None = None,
) -> str:
    """The whole report as text.

    ``columns`` limits the pictures of source lines, None where there is no terminal.
    ``verbose`` of 1 and more lists the rules that could not be judged, as a strict report does.
    ``quiet`` shows only errors and says nothing where there are none.
    """
    page = _Page(unicode, columns or _UNLIMITED)
    lines: list[Line] = []
    findings = [
        (index, finding)
        for index, finding in findings_in_order(report)
        if finding.severity is Severity.ERROR or not quiet
    ]
    for index, group in groupby(findings, key=lambda entry: entry[0]):
        if len(report.checks) > 1:
            lines += [page.heading(report.checks[index]), Line()]
        for _, finding in group:
            lines += [*page.finding(finding), Line()]
    for failure in report.failures:
        lines += [*page.failure(failure), Line()]
    if report.strict or (verbose and not quiet):
        for check in report.checks:
            if check.skipped:
                lines += [*page.skipped(check), Line()]
    elif not quiet:
        lines += page.blind(report.checks)
    if lines or not quiet or not report.complete:
        lines.append(page.summary(report))
    return paint(lines, color=color)


class _Page:
    """Makes styled lines for one kind of stream."""

    def __init__(self, unicode: bool, columns: int) -> None:
        self._unicode = unicode
        self._columns = columns

    def heading(self, check: Check) -> Line:
        """The line that says which config and launch the findings after it are about."""
        name, dots = self._safe(check_name(check)), ellipsis(unicode=self._unicode)
        room = max(self._columns, _NARROWEST) - len("==  ==")
        if cells(name) > room:
            from rich.cells import set_cell_size

            name = set_cell_size(name, room - len(dots)) + dots
        return Line(f"== {name} ==", "bold")

    def finding(self, finding: Finding) -> Iterator[Line]:
        """A finding with its pictures, reasons and help."""
        style = SEVERITY[finding.severity]
        yield Line.assemble(
            (f"{finding.severity.value}[{finding.code}]", style),
            (f": {self._safe(finding.message)}", "bold"),
            (f"  ({finding.rule})", FAINT),
        )
        marks = self._marks(finding, style)
        gutter = max(
            len(str(source.position(mark.span.start).line))
            for source in marks
            for mark in marks[source]
        )
        parts = [list(self._picture(source, marks[source], gutter)) for source in marks]
        below = [
            self._note(kind, words, _NOTE[kind], gutter)
            for kind, words in notes(finding, pictured=True)
        ]
        for index, part in enumerate([*parts, below] if below else parts):
            if index:
                yield self._framed(gutter)
            yield from part

    def failure(self, failure: Failure) -> Iterator[Line]:
        """An input that could not be read."""
        yield Line.assemble(
            ("error", SEVERITY[Severity.ERROR]),
            (f": {self._safe(failed(failure))}", "bold"),
        )
        if failure.help:
            yield self._note("help", failure.help, GOOD)

    def skipped(self, check: Check) -> Iterator[Line]:
        """The rules that a check could not judge, and why."""
        yield Line(f"Not judged in {self._safe(check_name(check))}:", "bold")
        for skipped in check.skipped:
            yield Line.assemble(
                f"  {self._safe(skipped.rule)}",
                (
                    f"  needs {self._safe(', '.join(skipped.missing))}: "
                    f"{self._safe(skipped.reason)}",
                    FAINT,
                ),
            )

    def blind(self, checks: Sequence[Check]) -> Iterator[Line]:
        """That silence about these checks says little, as nothing is known of their config."""
        silent: dict[str, list[Check]] = {}
        for check in checks:
            if check.skipped and not check.findings and (why := check.blind):
                silent.setdefault(why, []).append(check)
        for why, unknown in silent.items():
            rules = counted(len({skipped.rule for c in unknown for skipped in c.skipped}), "rule")
            where = f" in {len(unknown)} of {len(checks)} checks" if len(checks) > 1 else ""
            yield Line.assemble(
                ("note", FAINT),
                f": {self._safe(why)}, so {rules} could not judge{where}; "
                "dsguard check -v lists them",
            )

    def summary(self, report: Report) -> Line:
        """The last line: how many problems, in how much, judged by which DeepSpeed."""
        problems = [
            words
            for severity, words in (
                (Severity.ERROR, counted(report.count(Severity.ERROR), "error")),
                (Severity.WARNING, counted(report.count(Severity.WARNING), "warning")),
                (Severity.INFO, f"{report.count(Severity.INFO)} info"),
            )
            if report.count(severity)
        ]
        hidden = [
            f"{number} {what}"
            for number, what in (
                (report.fixed, "fixed"),
                (report.suppressed, "suppressed"),
                (report.baselined, "baselined"),
            )
            if number
        ]
        hidden += _fixable(report)
        found = f"Found {', '.join(problems)}" if problems else "No problems found"
        if hidden:
            found += f" ({', '.join(hidden)})"
        if report.checks:
            found += f" in {_amount(report.checks)}"
        elif not problems:
            found = "Nothing was checked"
        style = "bold" if problems else GOOD
        if not report.complete:
            found += ", and the answer is incomplete" if problems else ", the answer is incomplete"
            style = SEVERITY[Severity.ERROR]
        targets = dict.fromkeys(
            f"{check.target.version} ({_why(check.target)})" for check in report.checks
        )
        judged = f"; judged by DeepSpeed {', '.join(targets)}" if targets else ""
        return Line.assemble((found, style), self._safe(judged))

    def _marks(self, finding: Finding, style: str) -> dict[Source, list[Mark]]:
        """The place of the finding, then the places that its reasons stand in, by source."""
        at = finding.location
        marks = {at.source: [Mark(at.span, primary=True, style=style)]}
        for because in finding.because:
            location = because.origin.location
            # Where the caret already points the message has said the number.
            if location is not None and location[:2] != at[:2]:
                mark = Mark(location.span, self._safe(reason(because)))
                marks.setdefault(location.source, []).append(mark)
        return marks

    def _picture(self, source: Source, marks: Sequence[Mark], gutter: int) -> Iterator[Line]:
        """Where in a source the marks stand, and its lines with the marks under them."""
        primary = marks[0].primary
        span = marks[0].span if primary else min(mark.span for mark in marks)
        where = place(Location(source, span))
        if not primary and not source.is_file:
            where = source.name.strip("<>")
        arrow = f"{'':{gutter}} {'-->' if primary else ':::'} "
        yield Line.assemble((arrow, FRAME), self._safe(where))
        if primary:
            yield self._framed(gutter)
        width = max(self._columns - gutter - len("  | "), _NARROWEST)
        for row in draw(source, marks, unicode=self._unicode, width=width):
            if row.gutter == GAP:
                yield Line(GAP, FRAME)
            else:
                yield self._framed(gutter, row.gutter, row.body)

    def _framed(self, gutter: int, number: str = "", body: Line | None = None) -> Line:
        frame = f" {number:>{gutter}} |"
        return Line.assemble((f"{frame} ", FRAME), body) if body else Line(frame, FRAME)

    def _note(self, kind: str, text: str, style: str, gutter: int = 1) -> Line:
        return Line.assemble((f"{'':{gutter}}  = ", FRAME), (f"{kind}: ", style), self._safe(text))

    def _safe(self, text: str) -> str:
        return sentence(text, unicode=self._unicode)


def _fixable(report: Report) -> list[str]:
    """How many findings the options of fixing would repair."""
    safe, unsafe = (
        sum(len(check.fixable(safety)) for check in report.checks)
        for safety in (Safety.SAFE, Safety.UNSAFE)
    )
    words = [f"{safe} fixable with --fix"] if safe else []
    if unsafe:
        words.append(f"{unsafe} {'more ' if safe else ''}fixable with --fix --unsafe-fixes")
    return words


def _amount(checks: Sequence[Check]) -> str:
    """How much was checked: files where each has one launch, otherwise checks and files."""
    files = {check.config for check in checks if check.config is not None}
    if not files:
        return counted(len(checks), "launch command")
    if len(files) == len(checks):
        return counted(len(files), "file")
    return f"{counted(len(checks), 'check')} of {counted(len(files), 'file')}"


def _why(target: Target) -> str:
    why = _TARGET_ORIGIN[target.origin].format(file=target.file)
    if Version(Version(target.version).base_version) > NEWEST_KNOWN:
        why += f"; newer than {NEWEST_KNOWN}, the last that dsguard knows, and taken for it"
    return why
