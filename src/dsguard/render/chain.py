"""The whole chain behind one fact, as ``dsguard facts --explain NAME`` shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.fact import Candidate, Conflict, FactName, Known, Unknown
from dsguard.render.characters import sentence
from dsguard.render.line import Line
from dsguard.render.paint import FAINT, GOOD, paint
from dsguard.render.values import show_value
from dsguard.render.wording import said_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.report import Check


def render_chain(check: Check, name: FactName, *, color: bool, unicode: bool) -> str:
    """One fact, what it was derived from, and so on down to what somebody wrote."""
    return paint(_lines(check, name, 0, unicode), color=color)


def _lines(check: Check, name: FactName, depth: int, unicode: bool) -> Iterator[Line]:
    def safe(text: str) -> str:
        return sentence(text, unicode=unicode)

    indent = "  " * depth
    fact = check.facts[name]
    if isinstance(fact, Known):
        yield Line.assemble(
            f"{indent}{name} is ",
            (safe(show_value(fact.value)), GOOD),
            f": {safe(said_by(fact.origin))}",
        )
    elif isinstance(fact, Unknown):
        yield Line(f"{indent}{name} is unknown: {safe(fact.reason)}")
    else:
        yield Line(f"{indent}{name} is in conflict:")
        for one in fact.candidates:
            yield Line(f"{indent}  {safe(_given(one))}")
    if not isinstance(fact, Conflict):
        for loser in fact.ignored:
            yield Line(f"{indent}  ignored: {safe(_given(loser))}", FAINT)
    if isinstance(fact, Known):
        for cause in fact.origin.facts:
            yield from _lines(check, cause, depth + 1, unicode)


def _given(one: Candidate) -> str:
    return f"{show_value(one.value)} from {said_by(one.origin)}"
