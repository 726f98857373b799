"""bf16 gradients that pass through fp16; see fp16_gradients_in_bf16_training.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.dtypes import canonical
from dsguard.facts.values import written
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Is, Written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEYS = {
    "communication_data_type": "reduced",
    "data_types.grad_accum_dtype": "accumulated",
}
"""Where fp16 can come in, and what is then done in it."""


@rule(
    code="DSG407",
    slug="fp16-gradients-in-bf16-training",
    summary="gradients of bf16 training are reduced or accumulated in fp16",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("precision",),
    oracle="the engine's communication_data_type or accumulation dtype is torch.float16",
    when=(Is("precision", "bf16"), Written(*_KEYS)),
)
def fp16_gradients_in_bf16_training(case: Case, report: Reporter) -> Iterator[Finding]:
    """A value that bf16 can hold is infinite or 0 in fp16, and bf16 training scales no loss."""
    precision = case.facts.known("precision")
    if precision.value != "bf16":
        return
    for key, done in _KEYS.items():
        value = written(case.document, key)
        if value is None or value.origin.location is None or not isinstance(value.value, str):
            continue
        spelling = value.value.lower() if key == "communication_data_type" else value.value
        if canonical(spelling) != "fp16":
            continue
        if key == "data_types.grad_accum_dtype" and case.facts.value("zero_stage") in (0, None):
            continue
        yield report(
            value.origin.location,
            f"the gradients of bf16 training are {done} in fp16, where anything above 65504 is "
            "infinite and anything below 6e-8 is 0, and no loss scale guards against it",
            Consequence.DIFFERS,
            because=(Because.of("precision", precision),),
            help=f'remove {key}, or write "bf16" or "fp32"',
        )
