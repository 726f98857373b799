"""AMSGrad asked of an optimizer that does not have it; see refused_amsgrad.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.blocks import block, trust_in_blocks
from dsguard.facts.optimizer_class import built
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_REFUSE = ("FusedAdam", "DeepSpeedCPUAdam", "FusedLamb")


@rule(
    code="DSG514",
    slug="refused-amsgrad",
    summary="amsgrad with a DeepSpeed optimizer that refuses it",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="deepspeed.initialize raises RuntimeError: ... does not support the AMSGrad variant",
    when=(Written("optimizer.params.amsgrad"),),
)
def refused_amsgrad(case: Case, report: Reporter) -> Iterator[Finding]:
    """The classes take the argument and raise when it is true."""
    optimizer = block(case, "optimizer")
    if optimizer is None or optimizer.params.get("amsgrad") is not True:
        return
    what = built(case, optimizer)
    if what is None or what.name not in _REFUSE:
        return
    adam = what.name != "FusedLamb"
    yield report(
        optimizer.at("amsgrad"),
        f"{optimizer.type} is built as {what.name}, which does not have the AMSGrad variant; "
        "deepspeed.initialize stops with RuntimeError",
        Consequence.LATE,
        confidence=trust_in_blocks(case),
        help='remove amsgrad, or add "torch_adam": true to get the class of torch.optim'
        if adam
        else "remove amsgrad",
    )
