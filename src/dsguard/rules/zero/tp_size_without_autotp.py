"""A tensor-parallel degree under the wrong key; see tp_size_without_autotp.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.values import written
from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.rules.zero._settings import number, place, reason, release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_SIZE = "tensor_parallel.tp.tp_size"
_SWITCH = "tensor_parallel.autotp_size"
_SINCE = Version("0.16.4")
"""The release that brought the block."""


@rule(
    code="DSG320",
    slug="tp-size-without-autotp",
    summary="tensor_parallel.tp.tp_size that nobody reads",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="engine.autotp_size() is 0",
    when=(Written(_SIZE),),
)
def tp_size_without_autotp(case: Case, report: Reporter) -> Iterator[Finding]:
    """The engine asks for autotp_size alone."""
    size = number(case, _SIZE)
    if size is None or size <= 1 or release(case) < _SINCE:
        return
    if written(case.document, _SWITCH) is not None and number(case, _SWITCH) not in (0, 1):
        return
    yield report(
        place(case, _SIZE),
        f"tensor_parallel.tp.tp_size is {size:g}, but autotp_size is what switches tensor "
        "parallelism on: the model is not split",
        Consequence.IGNORED,
        because=reason(case, _SWITCH),
        help=f'write "autotp_size": {size:g} in tensor_parallel instead',
        # A script may split the model itself, with deepspeed.tp_model_init.
        confidence=Confidence.MEDIUM,
    )
