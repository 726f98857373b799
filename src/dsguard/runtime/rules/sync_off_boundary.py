"""Gradients synchronised at another micro-batch than the last; see sync_off_boundary.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import Attached, StepCalled
from dsguard.runtime.rule import guard_rule
from dsguard.runtime.wording import micro_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter


@guard_rule(
    code="DSG930",
    slug="sync-off-boundary",
    summary="the optimizer steps on gradients that were not synchronised between the ranks",
    severity=Severity.ERROR,
    since="0.1.0",
    on=(Attached, StepCalled),
)
def sync_off_boundary(moment: Attached | StepCalled, report: Reporter) -> Iterator[Finding]:
    """Look whether the last backward pass before a step, and only that, was synchronised."""
    run = moment.run
    if isinstance(moment, Attached):
        unseen = run.engine.synchronisation_unseen()
        if unseen:
            yield report(
                run.attached_at,
                f"gradient synchronisation is not judged: {unseen} in this release of PyTorch",
                Consequence.NOTE,
                severity=Severity.INFO,
            )
        return
    windows = run.windows
    harm = run.engine.needs_synchronised_step()
    if not windows.open or not harm or run.engine.synchronisation_unseen():
        return
    synchronised = windows.open - windows.unsynchronised
    if not windows.synchronised_last:
        done = f"{synchronised} of {micro_batches(windows.open)} synchronised"
        yield report(
            run.here(),
            "the optimizer steps on gradients that the last backward pass did not synchronise "
            f"({done if synchronised else 'none did'}): {harm}",
            Consequence.DIFFERS,
            help="run the last micro-batch of a window outside no_sync(), forward and backward, "
            "or after set_requires_gradient_sync(True)",
        )
    elif synchronised > 1:
        yield report(
            run.here(),
            f"gradients were synchronised {synchronised} times for one step of "
            f"{micro_batches(windows.open)}, where once is enough",
            Consequence.NOTE,
            severity=Severity.INFO,
            help="no_sync() or set_requires_gradient_sync(False) around all but the last "
            "micro-batch of a window saves the communication, at the price of memory under FSDP",
        )
