"""A checkpoint that another run has written; see resume_differs.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.equation import number
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.runtime.moments import Resumed
from dsguard.runtime.rule import guard_rule
from dsguard.runtime.wording import micro_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.fact import FactName
    from dsguard.model.rule import Reporter

_STEP: tuple[FactName, ...] = (
    "train_batch_size",
    "gradient_accumulation_steps",
    "precision",
    "optimizer",
)
"""A change of these is a change of what one step does."""

_LAYOUT: tuple[FactName, ...] = ("micro_batch_size", "world_size", "zero_stage")
"""A change of these alone leaves a step as it was."""


@guard_rule(
    code="DSG928",
    slug="resume-differs",
    summary="a run goes on from a checkpoint that was trained with other numbers",
    severity=Severity.WARNING,
    since="0.1.0",
    on=Resumed,
)
def resume_differs(moment: Resumed, report: Reporter) -> Iterator[Finding]:
    """Compare the engine with what the checkpoint was trained with."""
    run, before = moment.run, moment.contract
    facts = run.engine.facts()
    changed = [
        name
        for name in (*_STEP, *_LAYOUT)
        if name in before.facts and name in facts and before.facts[name].value != facts[name].value
    ]
    if changed:
        told = "; ".join(
            f"{name} was {number(before.facts[name].value)} and is {number(facts[name].value)}"
            for name in changed
        )
        serious = any(name in _STEP for name in changed)
        yield report(
            run.here(),
            f"the checkpoint was trained with other numbers: {told}",
            Consequence.DIFFERS if serious else Consequence.NOTE,
            because=tuple(Because.of(name, before.facts[name]) for name in changed),
            severity=Severity.WARNING if serious else Severity.INFO,
            help="steps, samples and the learning-rate schedule go on counting as if nothing had "
            "changed; start with the old numbers, or adapt the schedule",
        )
    if moment.pending:
        verb = "was" if moment.pending == 1 else "were"
        yield report(
            run.here(),
            "the checkpoint was written in the middle of a window: "
            f"{micro_batches(moment.pending)} {verb} accumulated, and their gradients are lost",
            Consequence.DIFFERS,
            help="save after a step: when engine.was_step_applied() is true",
        )
