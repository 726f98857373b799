"""compile.deepcompile in a script that does not compile; see deepcompile_not_started.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.frontends.base import FrontEndName
from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Given, Is, Written
from dsguard.rules.zero._settings import place, switch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEY = "compile.deepcompile"


@rule(
    code="DSG329",
    slug="deepcompile-not-started",
    summary="compile.deepcompile in a script that calls no compile()",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="engine.is_compiled is False after deepspeed.initialize",
    when=(Is("front_end", FrontEndName.PLAIN), Given("script"), Written(_KEY)),
)
def deepcompile_not_started(case: Case, report: Reporter) -> Iterator[Finding]:
    """The script that makes the engine is where it would be compiled."""
    if case.front_end is None or case.front_end.name is not FrontEndName.PLAIN:
        return
    if case.script is None or switch(case, _KEY, False) is not True or case.script.unreadable:
        return
    text = case.script.source.text
    if "deepspeed.initialize(" not in text or "compile(" in text:
        return
    yield report(
        place(case, _KEY),
        f"compile.deepcompile is true, but {case.script.source.name} makes the engine and does "
        "not call engine.compile(): nothing is compiled",
        Consequence.IGNORED,
        confidence=Confidence.MEDIUM,
        help="call engine.compile() after deepspeed.initialize()",
    )
