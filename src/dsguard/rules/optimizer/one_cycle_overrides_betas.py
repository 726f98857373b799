"""OneCycle replaces the optimizer's betas; see one_cycle_overrides_betas.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.blocks import block, trust_in_blocks
from dsguard.model.fact import Origin, OriginKind
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_SECOND_BETA = 0.99


@rule(
    code="DSG513",
    slug="one-cycle-overrides-betas",
    summary="OneCycle cycles the momentum and replaces the optimizer's betas",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="the optimizer's param groups have betas (cycle_min_mom, 0.99)",
    when=(Written("scheduler"), Written("optimizer.params.betas")),
)
def one_cycle_overrides_betas(case: Case, report: Reporter) -> Iterator[Finding]:
    """The second beta is 0.99 whatever the config says."""
    scheduler = block(case, "scheduler")
    optimizer = block(case, "optimizer")
    if scheduler is None or scheduler.type != "OneCycle" or optimizer is None:
        return
    betas = optimizer.params.get("betas")
    if scheduler.params.get("cycle_momentum", True) is not True:
        return
    if not isinstance(betas, list) or len(betas) != 2 or betas[1] == _SECOND_BETA:
        return
    yield report(
        optimizer.at("betas"),
        f"OneCycle cycles the momentum, so the betas become a momentum between cycle_min_mom and "
        f"cycle_max_mom and a fixed {_SECOND_BETA}; the second beta of {betas[1]} has no effect",
        Consequence.DIFFERS,
        because=(
            Because("scheduler.type", scheduler.type, Origin(OriginKind.CONFIG, scheduler.type_at)),
        ),
        confidence=trust_in_blocks(case),
        help='add "cycle_momentum": false to the parameters of OneCycle to keep the betas',
    )
