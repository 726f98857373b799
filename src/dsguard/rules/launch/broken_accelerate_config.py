"""An Accelerate config file that cannot be used; see broken_accelerate_config.md."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from dsguard.launch.accelerate_config import DISTRIBUTED_TYPES, KEYS, MIXED_PRECISIONS
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Troubles
from dsguard.rules.launch._troubles import WayOut, report_troubles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dsguard.facts.case import Case
    from dsguard.launch.context import LaunchContext, LaunchTrouble, TroubleKind


def _key(launch: LaunchContext, trouble: LaunchTrouble) -> str:
    written = (trouble.location.pointer or "").removeprefix("/")
    return _meant(written, KEYS) or "remove the key"


def _value(launch: LaunchContext, trouble: LaunchTrouble) -> str:
    if trouble.location.pointer == "/mixed_precision":
        return f"write one of {', '.join(sorted(MIXED_PRECISIONS))}, in quotes"
    if trouble.location.pointer != "/distributed_type":
        return "write for example distributed_type: DEEPSPEED"
    written = trouble.location.source.slice(trouble.location.span).strip("\"'").upper()
    types = sorted(DISTRIBUTED_TYPES)
    return _meant(written, types) or f"write one of {', '.join(types)}"


def _meant(written: str, known: Iterable[str]) -> str:
    close = get_close_matches(written, sorted(known), n=1, cutoff=0.75)
    return f"did you mean {close[0]}?" if close else ""


_WAYS_OUT: dict[TroubleKind, WayOut] = {
    "accelerate-config-missing": "name an existing file, or make one with: accelerate config",
    "accelerate-config-syntax": "repair the YAML",
    "accelerate-config-key": _key,
    "accelerate-config-value": _value,
}


@rule(
    code="DSG610",
    slug="broken-accelerate-config",
    summary="the config file of accelerate launch is missing or refused",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="accelerate launch raises ValueError",
    when=(Troubles(*_WAYS_OUT),),
)
def broken_accelerate_config(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report what Accelerate refuses in its own config file."""
    yield from report_troubles(case, report, _WAYS_OUT, Consequence.REFUSED)
