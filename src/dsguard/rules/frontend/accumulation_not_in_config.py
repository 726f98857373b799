"""Accumulation that the Trainer does and DeepSpeed does not know of.

See accumulation_not_in_config.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.facts.case import Case
from dsguard.facts.values import written
from dsguard.frontends.base import FrontEndName
from dsguard.launch.context import LauncherName
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.model.source import Location
from dsguard.rules.frontend._trainer import read_by

_KEY = "gradient_accumulation_steps"


@rule(
    code="DSG702",
    slug="accumulation-not-in-config",
    summary="the Trainer accumulates, and the config has no gradient_accumulation_steps",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="DeepSpeed raises AssertionError: Check batch related parameters",
)
def accumulation_not_in_config(case: Case, report: Reporter) -> Iterator[Finding]:
    """An absent count becomes 1 in Accelerate's plugin, whatever the Trainer does."""
    document = read_by(case, FrontEndName.TRANSFORMERS)
    request = case.requests.get(_KEY)
    if document is None or request is None or request.value == 1:
        return
    if written(document, _KEY) is not None:
        return
    total = written(document, "train_batch_size")
    micro = written(document, "train_micro_batch_size_per_gpu")
    because = (Because(_KEY, request.value, request.origin),)
    help = f'add "{_KEY}": "auto"'
    if total is not None and micro is not None and total.origin.location is not None:
        yield report(
            total.origin.location,
            f"the config has no {_KEY}, so DeepSpeed counts 1 while the Trainer makes "
            f"train_batch_size from {request.value} ({request.flag}): the product does not hold "
            "and DeepSpeed stops",
            Consequence.REFUSED,
            because=because,
            help=help,
        )
        return
    handed_on = (
        case.named is not None
        and case.named.argument.name == "deepspeed_config_file"
        and case.launch is not None
        and case.launch.launcher is LauncherName.ACCELERATE
    )
    start = document.locate("")
    at = Location(start.source, start.span._replace(end=start.span.start + 1), "")
    if handed_on:
        yield report(
            at,
            f"the config has no {_KEY}: accelerate launch puts 1 in, and the Trainer stops because "
            f"it asks for {request.value} ({request.flag})",
            Consequence.REFUSED,
            because=because,
            help=help,
        )
    else:
        yield report(
            at,
            f"the config has no {_KEY}: the Trainer accumulates over {request.value} micro-batches "
            f"({request.flag}), DeepSpeed counts 1, so its sample counts and throughput are wrong",
            Consequence.DIFFERS,
            severity=Severity.WARNING,
            because=because,
            help=help,
        )
