"""The engine runs with other numbers than were asked for; see expectation_differs.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.equation import number
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.runtime.moments import Attached
from dsguard.runtime.rule import guard_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter


@guard_rule(
    code="DSG901",
    slug="expectation-differs",
    summary="the engine runs with another number than was asked for",
    severity=Severity.ERROR,
    since="0.1.0",
    on=Attached,
)
def expectation_differs(moment: Attached, report: Reporter) -> Iterator[Finding]:
    """Compare every fact that was asked for with what the engine answers."""
    run = moment.run
    facts = run.engine.facts()
    for name, asked in run.expected.asked.items():
        found = facts.get(name)
        if found is None or found.value == asked.value:
            continue
        yield report(
            run.attached_at,
            f"{run.engine.words.engine} runs with {name} {number(found.value)}, not the "
            f"{number(asked.value)} that was asked for",
            Consequence.DIFFERS,
            because=(Because.of(name, asked), Because.of(name, found)),
            help=f"say {number(asked.value)} in {run.engine.words.settles}, or expect what it says",
        )
