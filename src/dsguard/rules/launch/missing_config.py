"""A launch that names a config that is not there; see missing_config.md."""

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
    code="DSG601",
    slug="missing-config",
    summary="the config that the launch names does not exist",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="raises ValueError: Expected a string path to an existing deepspeed config",
    when=(Given("named"), Without("named.is_checked")),
)
def missing_config(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report a relative path that leads nowhere; an absolute one may be another machine's."""
    if case.named is None or case.named.whereabouts is not Whereabouts.MISSING:
        return
    argument = case.named.argument
    yield report(
        argument.value_location,
        f"{argument.flag} names {argument.value}, but the folder of the launch holds no such file",
        Consequence.REFUSED,
        help="write the path as seen from the folder that the command is run in",
    )
