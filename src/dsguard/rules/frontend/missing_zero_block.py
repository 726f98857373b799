"""A config without zero_optimization under a trainer; see missing_zero_block.md."""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.facts.case import Case
from dsguard.facts.values import has
from dsguard.frontends.base import FrontEndName
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.model.source import Location
from dsguard.rules.frontend._trainer import read_by


@rule(
    code="DSG706",
    slug="missing-zero-block",
    summary="no zero_optimization block where Accelerate's plugin needs one",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("front_end",),
    oracle="DeepSpeedPlugin raises ValueError: Please specify the ZeRO optimization config",
)
def missing_zero_block(case: Case, report: Reporter) -> Iterator[Finding]:
    """DeepSpeed itself is fine without the block; the plugin of Accelerate is not."""
    document = read_by(case, FrontEndName.TRANSFORMERS, FrontEndName.ACCELERATE)
    if document is None or case.front_end is None or has(document, "zero_optimization"):
        return
    start = document.locate("")
    yield report(
        Location(start.source, start.span._replace(end=start.span.start + 1), ""),
        f"the config has no zero_optimization block, and {case.front_end.title} stops without one",
        Consequence.REFUSED,
        help='add "zero_optimization": {"stage": 0} (or the stage you want)',
    )
