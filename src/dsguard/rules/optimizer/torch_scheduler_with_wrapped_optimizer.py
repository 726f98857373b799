"""A scheduler of torch's on an optimizer that DeepSpeed has wrapped.

See torch_scheduler_with_wrapped_optimizer.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.blocks import block, trust_in_blocks
from dsguard.model.fact import FactName, Known
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.schema.schedulers import DEEPSPEED_SCHEDULERS, TORCH_SCHEDULERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG508",
    slug="torch-scheduler-with-wrapped-optimizer",
    summary="a torch.optim scheduler together with ZeRO, fp16 or bf16",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="deepspeed.initialize raises TypeError: ... is not an Optimizer",
    when=(Written("scheduler"),),
)
def torch_scheduler_with_wrapped_optimizer(case: Case, report: Reporter) -> Iterator[Finding]:
    """DeepSpeed's own schedulers look inside the wrapper; torch's want a torch optimizer."""
    scheduler = block(case, "scheduler")
    if scheduler is None or scheduler.type not in TORCH_SCHEDULERS:
        return
    wrapper = _wrapper(case)
    if wrapper is None:
        return
    yield report(
        scheduler.type_at,
        f"{scheduler.type} of torch.optim.lr_scheduler only takes a torch optimizer, and "
        f"DeepSpeed hands it the wrapped one ({wrapper.fact} is {wrapper.value}); "
        "deepspeed.initialize stops with TypeError",
        Consequence.LATE,
        because=(wrapper,),
        confidence=trust_in_blocks(case),
        help=f"use a scheduler of DeepSpeed's own ({', '.join(DEEPSPEED_SCHEDULERS)}), or make "
        "this one in the script and pass it to deepspeed.initialize",
    )


def _wrapper(case: Case) -> Because | None:
    """The first thing that makes DeepSpeed wrap the optimizer, None where nothing surely does."""
    wraps: tuple[tuple[FactName, tuple[object, ...]], ...] = (
        ("zero_stage", (1, 2, 3)),
        ("precision", ("fp16", "bf16")),
    )
    for name, values in wraps:
        fact = case.facts[name]
        if isinstance(fact, Known) and fact.value in values:
            return Because.of(name, fact)
    return None
