"""Clipping at a value that nobody gave; see implicit_clipping.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.values import written
from dsguard.frontends.base import AUTO, FrontEndName
from dsguard.model.finding import Because, Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import ReadBy, Written
from dsguard.rules.frontend._trainer import launcher_option, read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEY = "gradient_clipping"
_FILLED = 1.0
"""What ``Accelerator.prepare`` puts in where nothing else says."""


@rule(
    code="DSG711",
    slug="implicit-clipping",
    summary='gradient_clipping "auto" that only Accelerate\'s own 1.0 fills',
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("front_end",),
    oracle="gradient_clipping arrives at deepspeed.initialize as 1.0",
    when=(ReadBy(FrontEndName.ACCELERATE), Written(_KEY)),
)
def implicit_clipping(case: Case, report: Reporter) -> Iterator[Finding]:
    """The option of the launcher is the only place that is looked at; the loop's own is not."""
    document = read_by(case, FrontEndName.ACCELERATE)
    value = written(document, _KEY)
    if document is None or value is None or value.value != AUTO or value.origin.location is None:
        return
    if case.requests.filled_by_plugin(_KEY) is not None:
        return
    if case.launch is None or launcher_option(case, _KEY) is not None:
        return
    if document is case.launch.inline_config or value.origin.location.span == document.root.span:
        # Accelerate's own block or plugin without the key: nobody wrote "auto".
        return
    request = case.requests.get(_KEY)
    if request is not None and request.value == _FILLED:
        return
    said = "no --gradient_clipping is given to accelerate launch"
    yield report(
        value.origin.location,
        f'{_KEY} is "auto" and {said}, so Accelerate clips at {_FILLED:g}'
        + (f"; the {request.value:g} of {request.flag} has no effect" if request else ""),
        Consequence.DIFFERS,
        because=(Because(request.name, request.value, request.origin),) if request else (),
        help=f"write {request.value:g} in the config"
        if request
        else "write the number, or 0.0 for no clipping",
        # A DeepSpeedPlugin may still be made in a module that is not read.
        confidence=Confidence.MEDIUM,
    )
