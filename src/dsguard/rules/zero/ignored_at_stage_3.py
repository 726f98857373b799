"""Settings that stage 3 is not told of; see ignored_at_stage_3.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Is, Written
from dsguard.rules.zero._settings import place, stage_of, stage_reason, switch, zero

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_DEFAULTS = {"round_robin_gradients": False, "ignore_unused_parameters": True}
"""What only the optimizer of stage 1 and 2 is told, with DeepSpeed's own defaults."""


@rule(
    code="DSG324",
    slug="ignored-at-stage-3",
    summary="settings of stage 1 and 2 at stage 3",
    severity=Severity.INFO,
    since="0.1.0",
    needs=("zero_stage",),
    oracle="the engine builds DeepSpeedZeroOptimizer_Stage3, which is not told of them",
    when=(Is("zero_stage", 3), Written(*map(zero, _DEFAULTS))),
)
def ignored_at_stage_3(case: Case, report: Reporter) -> Iterator[Finding]:
    """Only a value that differs from the default asks for something."""
    if stage_of(case) != 3 or case.document is None:
        return
    for name, default in _DEFAULTS.items():
        if switch(case, zero(name), default) is (not default):
            yield report(
                place(case, zero(name)),
                f"{name} has no effect with stage 3",
                Consequence.IGNORED,
                because=stage_reason(case),
                help=f"remove {name}",
            )
