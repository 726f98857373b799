"""A launch that reads another config than the checked one; see other_config.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.config_file import Whereabouts
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Given, Without

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG602",
    slug="other-config",
    summary="the launch reads another config than the one that is checked",
    severity=Severity.WARNING,
    since="0.1.0",
    when=(Given("document", "named"), Without("named.is_checked")),
)
def other_config(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report a named config that is another file."""
    named = case.named
    if case.document is None or named is None or named.is_checked is not False:
        return
    if named.whereabouts is Whereabouts.MISSING:
        return
    yield report(
        named.argument.value_location,
        f"the launch reads {named.argument.value}; {case.document.source.name}, which is checked "
        "here, has no effect on it",
        Consequence.IGNORED,
        help=f"check {named.argument.value} instead, or name {case.document.source.name} in the "
        "launch",
    )
