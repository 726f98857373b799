"""An accumulation count in a config for Lightning; see lightning_owns_accumulation.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.values import has
from dsguard.frontends.base import FrontEndName
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import ReadBy, Written
from dsguard.rules.frontend._trainer import read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEY = "gradient_accumulation_steps"


@rule(
    code="DSG708",
    slug="lightning-owns-accumulation",
    summary="gradient_accumulation_steps in a config that Lightning reads",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="DeepSpeedStrategy raises MisconfigurationException",
    when=(ReadBy(FrontEndName.LIGHTNING), Written(_KEY)),
)
def lightning_owns_accumulation(case: Case, report: Reporter) -> Iterator[Finding]:
    """Lightning refuses the key whatever its value, even one equal to its own."""
    document = read_by(case, FrontEndName.LIGHTNING)
    if document is None or not has(document, _KEY):
        return
    yield report(
        document.locate(f"/{_KEY}", "key"),
        f"Lightning stops when the config has {_KEY}, whatever its value: it sets the count "
        "from Trainer(accumulate_grad_batches=...)",
        Consequence.REFUSED,
        help="remove the key and give accumulate_grad_batches",
    )
