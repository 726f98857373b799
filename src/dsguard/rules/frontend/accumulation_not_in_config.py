"""Accumulation that the Trainer does and DeepSpeed does not know of.

See accumulation_not_in_config.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.values import has, written
from dsguard.frontends.base import THROUGH_ACCELERATE, FrontEndName
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import ReadBy
from dsguard.rules.frontend._trainer import handed_on, read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.model.tree import Document

_KEY = "gradient_accumulation_steps"


@rule(
    code="DSG702",
    slug="accumulation-not-in-config",
    summary="the Trainer accumulates, and the config has no gradient_accumulation_steps",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="DeepSpeed raises AssertionError: Check batch related parameters",
    when=(ReadBy(*THROUGH_ACCELERATE),),
)
def accumulation_not_in_config(case: Case, report: Reporter) -> Iterator[Finding]:
    """An absent count becomes 1 in Accelerate's plugin, whatever the Trainer does."""
    document = read_by(case, *THROUGH_ACCELERATE)
    if document is None or case.front_end is None or written(document, _KEY) is not None:
        return
    if has(document, _KEY):
        yield from _null(case.front_end.title, document, report)
        return
    request = case.requests.get(_KEY)
    if case.front_end.name is FrontEndName.ACCELERATE or request is None or request.value == 1:
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
    at = document.start
    if handed_on(case):
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


def _null(title: str, document: Document, report: Reporter) -> Iterator[Finding]:
    """The plugin sees the key and leaves it; ``prepare()`` then multiplies with None."""
    if written(document, "train_micro_batch_size_per_gpu") is None:
        return
    yield report(
        document.locate(f"/{_KEY}"),
        f"{_KEY} is null, which {title} neither fills nor takes for absent: it stops with a "
        "TypeError",
        Consequence.REFUSED,
        help=f'write "{_KEY}": "auto"',
    )
