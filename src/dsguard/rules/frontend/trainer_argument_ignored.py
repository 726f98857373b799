"""An optimizer or scheduler argument that a config block replaces.

See trainer_argument_ignored.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.values import unread, written
from dsguard.frontends.base import FrontEndName
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import ReadBy
from dsguard.rules.frontend._trainer import read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_SAME_SCHEDULE = {
    "linear": "WarmupDecayLR",
    "constant_with_warmup": "WarmupLR",
    "cosine": "WarmupCosineLR",
}
_SAME_OPTIMIZER = ("adamw", "adam")
_SMALL_STATES = ("8bit", "4bit")
"""In the names of optimizers that are asked for to save memory, which DeepSpeed's Adam does not."""


@rule(
    code="DSG705",
    slug="trainer-argument-ignored",
    summary="--optim or --lr_scheduler_type beside a config block that replaces it",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="the engine's optimizer and scheduler are those of the config",
    when=(ReadBy(FrontEndName.TRANSFORMERS),),
)
def trainer_argument_ignored(case: Case, report: Reporter) -> Iterator[Finding]:
    """A block in the config replaces the argument without a word."""
    document = read_by(case, FrontEndName.TRANSFORMERS)
    if document is None:
        return
    for block, argument in (("optimizer", "optim"), ("scheduler", "lr_scheduler_type")):
        kind = written(document, f"{block}.type")
        request = case.requests.text(argument)
        if kind is None or kind.origin.location is None or request is None or not request.explicit:
            continue
        if unread(document, f"{block}.type") is not None:
            continue
        if _means_the_same(block, str(kind.value), str(request.value)):
            continue
        yield report(
            kind.origin.location,
            f"the {block} block wins: training uses {kind.value}, and {request.flag} "
            f"{request.value} has no effect",
            Consequence.IGNORED,
            because=(Because(argument, request.value, request.origin),),
            help=f"remove the {block} block to use {request.flag}, or the argument",
        )


def _means_the_same(block: str, kind: str, asked: str) -> bool:
    if block == "scheduler":
        return _SAME_SCHEDULE.get(asked) == kind
    if any(bits in asked for bits in _SMALL_STATES):
        return False
    return kind.lower() in _SAME_OPTIMIZER and asked.startswith(_SAME_OPTIMIZER)
