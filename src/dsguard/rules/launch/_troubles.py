"""What the rules about launchers share: one trouble of the launch becomes one finding."""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.facts.case import Case
from dsguard.launch.context import TroubleKind
from dsguard.model.finding import Consequence, Finding
from dsguard.model.rule import Reporter


def report_troubles(
    case: Case, report: Reporter, ways_out: dict[TroubleKind, str], otherwise: Consequence
) -> Iterator[Finding]:
    """A finding for each trouble of these kinds, with its way out.

    ``otherwise`` is the consequence of a trouble that does not stop the launcher.
    """
    for trouble in case.launch.troubles if case.launch is not None else ():
        if trouble.kind in ways_out:
            yield report(
                trouble.location,
                trouble.message,
                Consequence.REFUSED if trouble.refused else otherwise,
                help=ways_out[trouble.kind],
            )
