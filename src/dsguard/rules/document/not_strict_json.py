"""HJSON where a trainer reads strict JSON; see not_strict_json.md."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Edit, Finding, Fix, Safety, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.model.source import Location
from dsguard.model.tree import Deviation, DeviationKind, Document
from dsguard.rules._reader import confidence_in_reader
from dsguard.rules.conditions import Deviates

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dsguard.facts.case import Case

_SHOWN = 8


@rule(
    code="DSG004",
    slug="not-strict-json",
    summary="HJSON that a trainer's strict JSON reader refuses",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("front_end",),
    oracle="HfDeepSpeedConfig raises JSONDecodeError",
    when=(Deviates(),),
)
def not_strict_json(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report where ``json.load`` stops first, if the config goes through it, and what else."""
    if case.document is None or case.front_end is None or not case.front_end.strict_json:
        return
    stops = [deviation for deviation in case.document.deviations if deviation.stops]
    if not stops:
        return
    first, *others = stops
    yield report(
        Location(case.document.source, first.span),
        f"{case.front_end.title} reads the config as strict JSON and stops here "
        f"({first.detail or first.kind.value}), where DeepSpeed's own reader takes HJSON",
        Consequence.REFUSED,
        fix=_strict(case.document, stops),
        help="write strict JSON" + _others(case.document, others),
        confidence=confidence_in_reader(case),
    )


def _strict(document: Document, stops: Sequence[Deviation]) -> Fix | None:
    """Change commas, quotes of keys and a byte order mark only, if that is all that is missing."""
    edits = [_edit(document, deviation) for deviation in stops]
    wanted = tuple(edit for edit in edits if edit is not None)
    if len(wanted) < len(edits):
        return None
    return Fix("write strict JSON with the same values", Safety.SAFE, wanted)


def _edit(document: Document, deviation: Deviation) -> Edit | None:
    start, end = deviation.span
    if deviation.kind in (DeviationKind.TRAILING_COMMA, DeviationKind.BYTE_ORDER_MARK):
        return Edit(start, end, "")
    if deviation.kind is DeviationKind.MISSING_COMMA:
        return Edit(start, start, ",")
    if deviation.kind is DeviationKind.UNQUOTED_KEY:
        return Edit(start, end, json.dumps(document.source.slice(deviation.span)))
    return None


def _others(document: Document, deviations: Sequence[Deviation]) -> str:
    """The other places to repair, by line, as far as they fit a sentence."""
    if not deviations:
        return ""
    lines = dict.fromkeys(document.source.position(d.span.start).line for d in deviations)
    shown = ", ".join(str(line) for line in list(lines)[:_SHOWN])
    rest = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return f"; also on line{'s' if len(lines) > 1 else ''} {shown}{rest}"
