"""The report as workflow commands, which GitHub Actions shows beside the lines of a diff.

https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Finding, Severity
from dsguard.render.characters import sentence, visible
from dsguard.render.order import distinct_findings
from dsguard.render.wording import failed, notes, place

if TYPE_CHECKING:
    from dsguard.model.report import Failure, Report

_COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render_github(report: Report) -> str:
    """One annotation per finding, then one per input that could not be checked.

    The message begins with the place, because the log shows nothing but the message. What stands
    in no file, such as the launch command, is annotated without one. GitHub reads UTF-8 on every
    system.
    """
    lines = [_finding(finding) for _, finding in distinct_findings(report)]
    lines += [_failure(failure) for failure in report.failures]
    return "".join(f"{line}\n" for line in lines)


def _finding(finding: Finding) -> str:
    properties: dict[str, str | int] = {}
    source, span, _ = finding.location
    if source.is_file:
        start, end = source.position(span.start), source.position(max(span.end, span.start))
        properties = {"file": source.name, "line": start.line, "endLine": end.line}
        if start.line == end.line:  # columns are only taken within one line
            properties |= {"col": start.column, "endColumn": end.column}
    properties["title"] = f"{finding.code} {finding.rule}"
    message = [f"{place(finding.location)}: {finding.message}"]
    message += [f"{kind}: {text}" for kind, text in notes(finding)]
    return _command(_COMMAND[finding.severity], properties, message)


def _failure(failure: Failure) -> str:
    message = [failed(failure)]
    message += [f"help: {failure.help}"] if failure.help else []
    return _command("error", {"title": "dsguard"}, message)


def _command(name: str, properties: dict[str, str | int], message: list[str]) -> str:
    given = ",".join(
        f"{key}={_escaped_property(visible(str(value), unicode=True))}"
        for key, value in properties.items()
    )
    text = _escaped("\n".join(sentence(line, unicode=True) for line in message))
    return f"::{name} {given}::{text}"


def _escaped(text: str) -> str:
    """The data of a command; the percent sign comes first."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
