"""DeepSpeed options of ``accelerate launch`` that do nothing; see deepspeed_switched_off.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Troubles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG713",
    slug="deepspeed-switched-off",
    summary="DeepSpeed options of accelerate launch without --use_deepspeed",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="accelerate launch exports no ACCELERATE_USE_DEEPSPEED",
    when=(Troubles("deepspeed-options-ignored"),),
)
def deepspeed_switched_off(case: Case, report: Reporter) -> Iterator[Finding]:
    """Without the switch, or ``distributed_type: DEEPSPEED``, the options are never looked at."""
    for trouble in case.launch.troubles if case.launch is not None else ():
        if trouble.kind == "deepspeed-options-ignored":
            yield report(
                trouble.location,
                trouble.message,
                Consequence.IGNORED,
                help="add --use_deepspeed, or distributed_type: DEEPSPEED to Accelerate's config",
            )
