"""The report as SARIF 2.1.0, for code scanning and editors.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dsguard import __version__
from dsguard.model.finding import Finding, Fix, Severity
from dsguard.model.source import Location, Source, Span
from dsguard.render.order import distinct_findings
from dsguard.render.rule_page import HOME, rule_url
from dsguard.render.values import json_text
from dsguard.render.wording import failed, notes, place, reason
from dsguard.rules import find_rule, page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dsguard.model.report import Check, Report

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
ROOT = "%SRCROOT%"
"""What relative paths are relative to: the folder that dsguard is run in."""

_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render_sarif(report: Report) -> str:
    """The report as one run; a finding that several checks share stands there once."""
    found = list(distinct_findings(report))
    codes = sorted({finding.code for _, finding in found})
    marks = _fingerprints(found)
    files = dict.fromkeys(c.config for c in report.checks if c.config and _is_path(c.config))
    run = {
        "tool": {
            "driver": {
                "name": "dsguard",
                "version": __version__,
                "semanticVersion": __version__,
                "informationUri": HOME,
                "rules": [_rule(code, found) for code in codes],
            }
        },
        "invocations": [
            {
                "executionSuccessful": report.complete,
                "toolExecutionNotifications": [
                    {"level": "error", "message": {"text": failed(failure)}}
                    for failure in report.failures
                ],
            }
        ],
        "originalUriBaseIds": {
            ROOT: {"description": {"text": "The folder that dsguard was run in."}}
        },
        "artifacts": [{"location": _artifact(file), "roles": ["analysisTarget"]} for file in files],
        "columnKind": "unicodeCodePoints",
        "results": [
            {
                "ruleId": finding.code,
                "ruleIndex": codes.index(finding.code),
                "level": _LEVEL[finding.severity],
                "message": {"text": _message(finding)},
                "locations": [_location(finding.location, check)],
                **_related(finding),
                **_fixes(finding.fix, finding.location.source),
                "partialFingerprints": {"dsguard/v1": mark},
                "properties": {
                    "confidence": finding.confidence.value,
                    "consequence": finding.consequence.value,
                },
            }
            for (check, finding), mark in zip(found, marks, strict=True)
        ],
    }
    return json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}) + "\n"


def _rule(code: str, found: Iterable[tuple[Check, Finding]]) -> dict[str, Any]:
    """What the viewer says of a rule: its page is the help."""
    slug = next(finding.rule for _, finding in found if finding.code == code)
    descriptor: dict[str, Any] = {"id": code, "name": slug}
    rule = find_rule(slug)
    if rule is None:
        return descriptor
    text, level = page(rule), _LEVEL[rule.meta.severity]
    descriptor |= {
        "shortDescription": {"text": _sentence(rule.meta.summary)},
        "help": {"text": text, "markdown": text},
        "helpUri": rule_url(slug),
        "defaultConfiguration": {"level": level},
        "properties": {"tags": ["deepspeed", rule.meta.family], "problem.severity": level},
    }
    if level == "note":
        descriptor["properties"]["problem.severity"] = "recommendation"
    return descriptor


def _message(finding: Finding) -> str:
    """The message; what is said of launch commands is in words, as they are no artifacts."""
    lines = [_sentence(finding.message)]
    if not finding.location.source.is_file:
        lines.append(f"in {place(finding.location)}")
    lines += [f"{kind}: {text}" for kind, text in notes(finding)]
    return "\n".join(lines)


def _sentence(clause: str) -> str:
    return clause if clause.endswith((".", "!", "?")) else f"{clause}."


def _location(at: Location, check: Check) -> dict[str, Any]:
    """Where a finding stands.

    One in a launch command is shown at the top of the config that it starts, since viewers leave
    out what is in no file.
    """
    if at.source.is_file:
        where: dict[str, Any] = {"physicalLocation": _physical(at)}
        if at.pointer:
            where["logicalLocations"] = [{"fullyQualifiedName": at.pointer, "kind": "property"}]
        return where
    where = {"logicalLocations": [{"fullyQualifiedName": at.source.name}]}
    if check.config is not None and _is_path(check.config):
        where["physicalLocation"] = {
            "artifactLocation": _artifact(check.config),
            "region": {"startLine": 1},
        }
    return where


def _related(finding: Finding) -> dict[str, Any]:
    """The places in files where the numbers of a finding come from."""
    related = [
        {
            "id": number,
            "physicalLocation": _physical(because.origin.location),
            "message": {"text": reason(because)},
        }
        for number, because in enumerate(finding.because)
        if because.origin.location is not None and because.origin.location.source.is_file
    ]
    return {"relatedLocations": related} if related else {}


def _fixes(fix: Fix | None, source: Source) -> dict[str, Any]:
    if fix is None or not fix.edits or not source.is_file:
        return {}
    replacements = [
        {
            "deletedRegion": _region(source, Span(edit.start, edit.end)),
            "insertedContent": {"text": edit.text},
        }
        for edit in fix.edits
    ]
    change = {"artifactLocation": _artifact(source.name), "replacements": replacements}
    return {
        "fixes": [
            {
                "description": {"text": fix.title},
                "artifactChanges": [change],
                "properties": {"safety": fix.safety.value},
            }
        ]
    }


def _physical(at: Location) -> dict[str, Any]:
    return {
        "artifactLocation": _artifact(at.source.name),
        "region": _region(at.source, at.span),
    }


def _region(source: Source, span: Span) -> dict[str, int]:
    start, end = (source.position(offset) for offset in span)
    return {
        "startLine": start.line,
        "startColumn": start.column,
        "endLine": end.line,
        "endColumn": end.column,
    }


def _artifact(name: str) -> dict[str, str]:
    """A file by its name: below the root where the name is relative."""
    path = PurePath(name)
    if path.is_absolute():
        uri = quote(path.as_posix().lstrip("/"), safe="/:", errors="surrogatepass")
        return {"uri": f"file:///{uri}"}
    # A colon in a relative reference would make the words before it a scheme.
    return {"uri": quote(path.as_posix(), errors="surrogatepass"), "uriBaseId": ROOT}


def _is_path(name: str) -> bool:
    """Whether the config of a check is a file; others are called ``<stdin>`` and the like."""
    return not name.startswith("<")


def _fingerprints(found: Iterable[tuple[Check, Finding]]) -> list[str]:
    """What stays the same while lines move: rule, file and pointer, or the words in a launch."""
    counts = Counter[str]()
    marks = []
    for _, finding in found:
        source, span, pointer = finding.location
        place = source.slice(span) if pointer is None else pointer
        key = "\0".join((finding.rule, PurePath(source.name).as_posix(), place))
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        counts[digest] += 1
        marks.append(f"{digest}:{counts[digest]}")
    return marks
