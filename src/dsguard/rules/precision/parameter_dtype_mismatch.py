"""param_dtype that is not the precision switched on; see parameter_dtype_mismatch.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.dtypes import canonical
from dsguard.facts.values import written
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEY = "data_types.param_dtype"
_SINCE = Version("0.19.2")


@rule(
    code="DSG403",
    slug="parameter-dtype-mismatch",
    summary="data_types.param_dtype differs from the training precision",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("precision",),
    oracle="deepspeed.initialize raises AssertionError: data_types.param_dtype conflicts with the "
    "enabled precision mode",
    when=(Written(_KEY),),
)
def parameter_dtype_mismatch(case: Case, report: Reporter) -> Iterator[Finding]:
    """The key repeats what the fp16 and bf16 blocks say; it switches nothing on."""
    value = written(case.document, _KEY)
    precision = case.facts.known("precision")
    if value is None or value.origin.location is None or Version(case.target.version) < _SINCE:
        return
    parameters = canonical(value.value)
    if parameters is None or parameters == precision.value:
        return
    if parameters == "fp32":
        help = f"remove param_dtype, or switch {precision.value} off"
    else:
        help = f"switch {parameters} on in its own block, or remove param_dtype"
    yield report(
        value.origin.location,
        f"param_dtype is {parameters} and the model trains in {precision.value}; "
        "deepspeed.initialize stops with AssertionError",
        Consequence.LATE,
        because=(Because.of("precision", precision),),
        help=help,
    )
