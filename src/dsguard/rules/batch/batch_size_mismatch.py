"""Three batch sizes whose product is another number; see batch_size_mismatch.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.equation import BatchFailure, number
from dsguard.frontends.base import FrontEndName
from dsguard.model.finding import Consequence, Edit, Finding, Fix, Safety, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules._effect import effect_of_key
from dsguard.rules.batch._numbers import counted, place, reasons
from dsguard.rules.conditions import Fails

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG201",
    slug="batch-size-mismatch",
    summary="train_batch_size is not micro batch x accumulation x data-parallel size",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=(
        "train_batch_size",
        "micro_batch_size",
        "gradient_accumulation_steps",
        "data_parallel_size",
    ),
    oracle="raises AssertionError: Check batch related parameters",
    when=(Fails(BatchFailure.PRODUCT),),
)
def batch_size_mismatch(case: Case, report: Reporter) -> Iterator[Finding]:
    """Compare what the three keys say."""
    if case.batch.failure is not BatchFailure.PRODUCT:
        return
    train, micro, steps, ranks = (case.facts.value(name) for name in batch_size_mismatch.meta.needs)
    product = case.batch.product
    at = place(case, "train_batch_size")
    fix = None
    if case.document is not None and float(product).is_integer():
        fix = Fix(
            f"set train_batch_size to {number(product)}"
            + effect_of_key(case, "train_batch_size", int(product)),
            Safety.UNSAFE,
            (Edit(at.span.start, at.span.end, number(product)),),
        )
    trainer = case.front_end is not None and case.front_end.name is FrontEndName.TRANSFORMERS
    yield report(
        at,
        f"train_batch_size is {number(train)}, but {number(micro)} per GPU x "
        f"{counted(steps, 'accumulation step')} x {counted(ranks, 'data-parallel rank')} is "
        f"{number(product)}",
        Consequence.REFUSED,
        because=reasons(case, *batch_size_mismatch.meta.needs[1:]),
        fix=fix,
        help='say "auto" for all three keys, and the trainer fills them'
        if trainer
        else "leave train_batch_size out, and DeepSpeed derives it for any number of GPUs",
    )
