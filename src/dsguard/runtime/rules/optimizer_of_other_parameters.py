"""An optimizer without the model's parameters; see optimizer_of_other_parameters.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.runtime.moments import Attached
from dsguard.runtime.rule import guard_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter


@guard_rule(
    code="DSG931",
    slug="optimizer-of-other-parameters",
    summary="the optimizer holds none of the model's parameters",
    severity=Severity.WARNING,
    since="0.1.0",
    on=Attached,
)
def optimizer_of_other_parameters(moment: Attached, report: Reporter) -> Iterator[Finding]:
    """Compare the parameters by identity: wrapping a model may replace them."""
    run = moment.run
    optimizer = run.engine.foreign_optimizer()
    if not optimizer:
        return
    yield report(
        run.attached_at,
        f"the {optimizer} holds none of the parameters of the {run.engine.kind}: its steps do "
        "not reach the model",
        Consequence.DIFFERS,
        confidence=Confidence.MEDIUM,
        help="make the optimizer from model.parameters() after fully_shard or FSDP, which "
        "replace the parameters",
    )
