"""A text that DeepSpeed's reader cannot read; see syntax_error.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Given

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG002",
    slug="syntax-error",
    summary="the file is neither JSON nor HJSON",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="hjson.load raises HjsonDecodeError",
    when=(Given("unreadable"),),
)
def syntax_error(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report where the reader stopped."""
    broken = case.unreadable
    if broken is not None:
        yield report(broken.location, broken.message, Consequence.REFUSED, help=broken.help)
