"""Micro-batches that wait for a step which may not come; see window_open.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import Closed, EpochEnded, EvaluationForward, Loaded, Moment, Saving
from dsguard.runtime.rule import guard_rule
from dsguard.runtime.run import Boundary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.fact import FactName
    from dsguard.model.rule import Reporter

_STEPS: FactName = "gradient_accumulation_steps"
_OUTCOME: dict[type[Moment], tuple[Severity, str, str]] = {
    EvaluationForward: (
        Severity.INFO,
        "the model is evaluated",
        "the weights do not know them yet",
    ),
    EpochEnded: (
        Severity.INFO,
        "the epoch has ended",
        "they go into the first step of the next one",
    ),
    Saving: (
        Severity.WARNING,
        "a checkpoint is written",
        "their gradients are not in it",
    ),
    Loaded: (
        Severity.WARNING,
        "a checkpoint was loaded",
        "the engine goes on counting where it was, and their gradients go into the next step",
    ),
    Closed: (
        Severity.WARNING,
        "the run has ended",
        "the optimizer never used them",
    ),
}

_TOLD_BY = ("accumulated-twice", "boundary-never-reached", "step-around-engine")
"""Rules that have said why nothing uses them."""


@guard_rule(
    code="DSG925",
    slug="window-open",
    summary="micro-batches wait for the optimizer at an evaluation, epoch end, checkpoint or exit",
    severity=Severity.WARNING,
    since="0.1.0",
    on=tuple(_OUTCOME),
)
def window_open(moment: Moment, report: Reporter) -> Iterator[Finding]:
    """Say how many wait, and what becomes of them."""
    run = moment.run
    pending = (
        max(moment.pending, moment.residue) if isinstance(moment, Loaded) else run.windows.open
    )
    if not pending or (run.boundary is Boundary.CALLER and not run.asked(_STEPS)):
        return
    if isinstance(moment, Closed) and any(rule in run.said for rule in _TOLD_BY):
        return
    severity, event, outcome = _OUTCOME[type(moment)]
    verb = "waits" if pending == 1 else "wait"
    yield report(
        run.attached_at if isinstance(moment, Closed) else run.here(),
        f"{event} while {pending} of {run.windows.expected} micro-batches {verb} for the "
        f"optimizer: {outcome}",
        Consequence.NOTE if severity is Severity.INFO else Consequence.DIFFERS,
        severity=severity,
        help="a number of batches that is a multiple of the accumulation leaves none behind",
    )
