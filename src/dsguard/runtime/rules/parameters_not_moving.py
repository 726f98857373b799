"""Steps that change nothing; see parameters_not_moving.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.runtime.moments import ParametersWatched
from dsguard.runtime.rule import guard_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter

_STEPS = 4
_LOW_PRECISION_STEPS = 64
"""A small update is lost in the rounding of 16-bit weights more often than not."""

_TOLD_BY = "sync-off-boundary"
"""The rule that has named the cause under FSDP."""


@guard_rule(
    code="DSG926",
    slug="parameters-not-moving",
    summary="the optimizer steps, and the parameters stay as they are",
    severity=Severity.WARNING,
    since="0.1.0",
    on=ParametersWatched,
)
def parameters_not_moving(moment: ParametersWatched, report: Reporter) -> Iterator[Finding]:
    """No sampled element has changed in so many applied steps with a learning rate above 0."""
    enough = _LOW_PRECISION_STEPS if moment.low_precision else _STEPS
    if moment.unmoved_steps < enough or _TOLD_BY in moment.run.said:
        return
    yield report(
        moment.run.here(),
        f"none of the sampled parameters has changed in {moment.unmoved_steps} optimizer steps "
        "with a learning rate above 0",
        Consequence.DIFFERS,
        confidence=Confidence.MEDIUM,
        help="check that the optimizer was given the parameters of the model that is trained, "
        "and that the loss depends on them",
    )
