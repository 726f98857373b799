"""torch_autocast without a type; see autocast_without_dtype.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.values import written
from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_SINCE = Version("0.17.2")


@rule(
    code="DSG406",
    slug="autocast-without-dtype",
    summary="torch_autocast without dtype, which is float16 on a GPU",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="the engine's autocast dtype is None, for which torch takes its own default",
    when=(Written("torch_autocast.enabled"),),
)
def autocast_without_dtype(case: Case, report: Reporter) -> Iterator[Finding]:
    """The documentation names bfloat16 as the default; the code has none."""
    autocast = written(case.document, "torch_autocast.enabled")
    if autocast is None or autocast.value is not True or autocast.origin.location is None:
        return
    if Version(case.target.version) < _SINCE:
        return
    if written(case.document, "torch_autocast.dtype") is not None:
        return
    yield report(
        autocast.origin.location,
        "torch_autocast gives no dtype, so PyTorch's own default counts, float16 on a GPU, and "
        "DeepSpeed does not scale the loss",
        Consequence.DIFFERS,
        # PyTorch's default is another one on other devices.
        confidence=Confidence.MEDIUM,
        help='write "dtype": "bfloat16", or the type you want',
    )
