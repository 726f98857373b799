"""compute_grad_norm false with clipping or optimizer offload; see grad_norm_off.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.values import is_number
from dsguard.model.fact import Known
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Is, Written
from dsguard.rules.zero._settings import OFFLOADED, place, release, stage_of, switch, zero

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEY = zero("compute_grad_norm")
_SINCE = Version("0.19.7")
"""The release that brought the key."""


@rule(
    code="DSG309",
    slug="grad-norm-off",
    summary="compute_grad_norm off where the norm is needed",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage",),
    oracle="deepspeed.initialize raises ValueError: ...compute_grad_norm=false requires",
    when=(Is("zero_stage", 1, 2), Written(_KEY)),
)
def grad_norm_off(case: Case, report: Reporter) -> Iterator[Finding]:
    """An absent gradient_clipping is 1.0 in every release that knows the key."""
    if stage_of(case) not in (1, 2) or switch(case, _KEY, True) is not False:
        return
    if release(case) < _SINCE:
        return
    clipping, offload = case.facts["gradient_clipping"], case.facts["offload_optimizer"]
    if isinstance(clipping, Known) and is_number(clipping.value) and clipping.value > 0:
        yield report(
            place(case, _KEY),
            f"compute_grad_norm is false, but gradients are to be clipped at {clipping.value:g}, "
            "which takes the norm",
            Consequence.LATE,
            because=(Because.of("gradient_clipping", clipping),),
            help="set gradient_clipping to 0.0, or remove compute_grad_norm",
        )
    if isinstance(offload, Known) and offload.value in OFFLOADED:
        yield report(
            place(case, _KEY),
            "compute_grad_norm is false, which does not work with optimizer offload",
            Consequence.LATE,
            because=(Because.of("offload_optimizer", offload),),
            help="remove compute_grad_norm, or offload_optimizer",
        )
