"""An optimizer that ZeRO refuses unless told otherwise; see untested_optimizer.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.blocks import trust_in_blocks
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Is
from dsguard.rules.zero._settings import (
    named_optimizer,
    release,
    stage_of,
    stage_reason,
    switch,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_ALLOW = "zero_allow_untested_optimizer"

_OF_TORCH = frozenset(
    {
        "ASGD",
        "Adadelta",
        "Adafactor",
        "Adamax",
        "NAdam",
        "RAdam",
        "RMSprop",
        "Rprop",
        "SGD",
    }
)
"""Names that DeepSpeed finds in ``torch.optim``, as they are written there, and no release
counts as tested (``ZERO_SUPPORTED_OPTIMIZERS`` in deepspeed/runtime/zero/utils.py)."""

_ONE_BIT = ("onebitadam", "onebitlamb", "zerooneadam")
_ONE_BIT_UNTIL = Version("0.19.7")
"""Gone in this release; until then they were DeepSpeed's own and never ran with ZeRO."""


@rule(
    code="DSG301",
    slug="untested-optimizer",
    summary="ZeRO with an optimizer it is not tested with",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage", "optimizer"),
    oracle="deepspeed.initialize raises AssertionError: You are using an untested ZeRO Optimizer",
    when=(Is("optimizer", *sorted(name.lower() for name in _OF_TORCH), "lamb", *_ONE_BIT),),
)
def untested_optimizer(case: Case, report: Reporter) -> Iterator[Finding]:
    """Only names that are sure to be refused; a name nobody knows is another matter."""
    optimizer = case.facts.known("optimizer")
    name = optimizer.value if isinstance(optimizer.value, str) else ""
    one_bit = named_optimizer(case) in _ONE_BIT and release(case) < _ONE_BIT_UNTIL
    if name not in _OF_TORCH and named_optimizer(case) != "lamb" and not one_bit:
        return
    if stage_of(case) == 0 or switch(case, _ALLOW, False) is not False:
        return
    if optimizer.origin.location is None:
        return
    yield report(
        optimizer.origin.location,
        f"ZeRO stage {stage_of(case)} refuses {name}, which it is not tested with",
        Consequence.LATE,
        because=stage_reason(case),
        help=f"{name} runs without ZeRO only; take Adam, AdamW, Adagrad, Lion or Muon"
        if one_bit
        else f"add {_ALLOW}: true on the top level, or take Adam, AdamW, Adagrad, Lion or Muon",
        confidence=trust_in_blocks(case),
    )
