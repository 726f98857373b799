"""A config without a zero_optimization block under a trainer; see missing_zero_block.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.values import lacks
from dsguard.frontends.base import THROUGH_ACCELERATE
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules._reader import confidence_in_reader
from dsguard.rules.conditions import ReadBy
from dsguard.rules.frontend._trainer import read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG706",
    slug="missing-zero-block",
    summary="no zero_optimization block where Accelerate's plugin needs one",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("front_end",),
    oracle="DeepSpeedPlugin raises ValueError: Please specify the ZeRO optimization config",
    when=(ReadBy(*THROUGH_ACCELERATE),),
)
def missing_zero_block(case: Case, report: Reporter) -> Iterator[Finding]:
    """DeepSpeed takes no block, or true for stage 1; the plugin of Accelerate takes neither."""
    document = read_by(case, *THROUGH_ACCELERATE)
    if document is None or case.front_end is None:
        return
    node = document.get("/zero_optimization")
    if lacks(document, "zero_optimization"):
        yield report(
            document.start,
            f"the config has no zero_optimization block, and {case.front_end.title} stops without "
            "one",
            Consequence.REFUSED,
            help='add "zero_optimization": {"stage": 0} (or the stage you want)',
            confidence=confidence_in_reader(case),
        )
    elif node is not None and isinstance(node.value, bool):
        written = str(node.value).lower()
        yield report(
            document.locate("/zero_optimization"),
            f"zero_optimization is {written}, and {case.front_end.title} stops over anything but "
            "an object",
            Consequence.REFUSED,
            help=f'write {{"stage": {int(node.value)}}}, which is what {written} means',
            confidence=confidence_in_reader(case),
        )
