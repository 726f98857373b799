"""A bug of the running release that this run meets; see known_bad_release.md."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dsguard.facts.known_bugs import KNOWN_BUGS, BugFact, KnownBug
from dsguard.model.finding import Because, Finding, Severity
from dsguard.runtime.moments import Attached, Backward, StepCalled
from dsguard.runtime.rule import guard_rule
from dsguard.runtime.run import said_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter

_TWO = 2
_TOLD_BY: dict[BugFact, str] = {
    "forward_through": "forward-around-engine",
    "backward_through": "backward-around-engine",
}
"""Rules that say the same of what the loop does, and where it does it."""


@guard_rule(
    code="DSG906",
    slug="known-bad-release",
    summary="a bug of the running release of DeepSpeed that this engine or loop meets",
    severity=Severity.ERROR,
    since="0.1.0",
    on=(Attached, Backward, StepCalled),
)
def known_bad_release(
    moment: Attached | Backward | StepCalled, report: Reporter
) -> Iterator[Finding]:
    """Ask the table of known bugs: about the engine at once, about the loop when it is seen."""
    run = moment.run
    release = run.engine.release()
    bugs = _bugs(release)[not isinstance(moment, Attached)] if release else ()
    if not bugs:
        return
    if isinstance(moment, Backward) and run.windows.since_step != _TWO:
        return
    seen = {} if isinstance(moment, Attached) else _seen(moment)
    facts = {**run.engine.bug_facts(), **seen}
    for bug in bugs:
        if not bug.shows(release, facts):
            continue
        if any(rule in run.said for fact, rule in _TOLD_BY.items() if fact in bug.when):
            continue
        yield report(
            run.attached_at if isinstance(moment, Attached) else run.here(),
            f"DeepSpeed {release} has a bug that this run meets: {bug.says} ({bug.source})",
            bug.consequence,
            severity=bug.severity,
            because=tuple(
                Because(name, facts[name], said_by("the running engine")) for name in bug.when
            ),
            help=bug.way_out,
        )


def _seen(moment: Backward | StepCalled) -> dict[BugFact, Any]:
    """What the loop has done since the last ``engine.step()``."""
    run = moment.run
    seen: dict[BugFact, Any] = {}
    if isinstance(moment, Backward):
        # Only the last one of a window is followed by a reduction, where the second fails.
        if run.reduced:
            seen["backwards_per_step"] = run.windows.since_step
    elif run.windows.since_step:
        seen["forward_through"] = "engine" if run.windows.forwards else "module"
        seen["backward_through"] = "engine" if run.through_engine else "loss"
    return seen


@lru_cache(maxsize=8)
def _bugs(release: str) -> tuple[tuple[KnownBug, ...], tuple[KnownBug, ...]]:
    """The bugs of a release that an engine shows as it stands, and those that a loop meets."""
    try:
        of_release = [bug for bug in KNOWN_BUGS if release in bug.releases]
    except ValueError:  # a build that calls itself something else than a number
        of_release = []
    return (
        tuple(bug for bug in of_release if not bug.needs_a_running_engine),
        tuple(bug for bug in of_release if bug.needs_a_running_engine),
    )
