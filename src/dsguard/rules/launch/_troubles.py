"""What the rules about launchers share: one trouble of the launch becomes one finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from dsguard.launch.context import LaunchContext, LaunchTrouble, TroubleKind
from dsguard.model.finding import Confidence, Consequence, Finding, Severity

if TYPE_CHECKING:
    from dsguard.facts.case import Case
    from dsguard.model.rule import Reporter

WayOut: TypeAlias = str | Callable[[LaunchContext, LaunchTrouble], str]
"""The way out of a kind of trouble, in words; empty where the message says it all."""


def report_troubles(
    case: Case,
    report: Reporter,
    ways_out: Mapping[TroubleKind, WayOut],
    otherwise: Consequence,
    *,
    severity: Severity | None = None,
    confidence: Confidence = Confidence.HIGH,
) -> Iterator[Finding]:
    """A finding for each trouble of these kinds, with its way out.

    ``otherwise`` is the consequence of a trouble that does not stop the launcher; ``severity``
    is given only where it differs from the rule's own.
    """
    launch = case.launch
    if launch is None:
        return
    for trouble in launch.troubles:
        way_out = ways_out.get(trouble.kind)
        if way_out is None:
            continue
        yield report(
            trouble.location,
            trouble.message,
            Consequence.REFUSED if trouble.refused else otherwise,
            help=way_out if isinstance(way_out, str) else way_out(launch, trouble),
            severity=severity,
            confidence=confidence,
        )
