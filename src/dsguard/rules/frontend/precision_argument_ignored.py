"""A precision that is asked for and not trained in; see precision_argument_ignored.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.values import has, written
from dsguard.frontends.base import THROUGH_ACCELERATE, FrontEndName
from dsguard.model.fact import Conflict
from dsguard.model.finding import Because, Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.model.tree import Document, Object
from dsguard.rules.conditions import ReadBy
from dsguard.rules.frontend._trainer import asked_precision, own_switch, read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.frontends.requests import Request


@rule(
    code="DSG707",
    slug="precision-argument-ignored",
    summary="a 16-bit format that is asked for, and a config that leaves it off",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="engine.bfloat16_enabled() is False, or Accelerate raises ValueError",
    when=(ReadBy(*THROUGH_ACCELERATE),),
)
def precision_argument_ignored(case: Case, report: Reporter) -> Iterator[Finding]:
    """A block that is written wins over what is asked for; only an absent one is put in."""
    document = read_by(case, *THROUGH_ACCELERATE)
    if document is None or case.front_end is None:
        return
    asked = asked_precision(case)
    if asked is None:
        yield from _old_name(document, report)
        return
    yield from _other_format(case, document, report, asked)
    yield from _switched_off(case, document, report, asked)


def _switched_off(
    case: Case, document: Document, report: Reporter, asked: Request
) -> Iterator[Finding]:
    """The block is there and off: nobody fills an absent ``enabled``, Accelerate compares none."""
    block = document.get(f"/{asked.value}")
    enabled = written(document, f"{asked.value}.enabled")
    if not isinstance(block, Object):
        return
    own_loop = case.front_end is not None and case.front_end.name is FrontEndName.ACCELERATE
    if enabled is None:
        at = document.locate(f"/{asked.value}", "key")
        said = f"the {asked.value} block has no enabled, which means off"
    elif enabled.value is False and own_loop and enabled.origin.location is not None:
        at = enabled.origin.location
        said = f"{asked.value}.enabled is false, and Accelerate does not compare"
    else:
        return
    yield report(
        at,
        f"{said}: training runs in fp32 although {asked.flag} is given",
        Consequence.DIFFERS,
        because=(Because("precision", asked.value, asked.origin),),
        help=f'write "{asked.value}": {{"enabled": "auto"}}',
        confidence=asked.confidence,
        severity=_severity(asked),
    )


def _other_format(
    case: Case, document: Document, report: Reporter, asked: Request
) -> Iterator[Finding]:
    """The other format is on in the config: Accelerate's plugin raises ValueError."""
    other = "bf16" if asked.value == "fp16" else "fp16"
    enabled = written(document, f"{other}.enabled")
    if enabled is None or enabled.value is not True or enabled.origin.location is None:
        return
    if isinstance(case.facts["precision"], Conflict) and has(document, asked.value):
        # Both formats are on: fp16-with-bf16 says so.
        return
    trainer = case.front_end is not None and case.front_end.name is FrontEndName.TRANSFORMERS
    if trainer and own_switch(case, other) is not None:
        # training-argument-mismatch compares the switch with the config.
        return
    title = case.front_end.title if case.front_end is not None else ""
    yield report(
        enabled.origin.location,
        f"{other}.enabled is true, but {asked.flag} asks for {asked.value}: {title} stops",
        Consequence.REFUSED,
        because=(Because("precision", asked.value, asked.origin),),
        help='write "auto" in both blocks, and the argument decides',
        confidence=asked.confidence,
        severity=_severity(asked),
    )


def _old_name(document: Document, report: Reporter) -> Iterator[Finding]:
    """A ``bf16`` block that is off is put beside the old name, and DeepSpeed reads that first."""
    enabled = written(document, "bfloat16.enabled")
    if enabled is None or enabled.value is not True or has(document, "bf16"):
        return
    yield report(
        document.locate("/bfloat16", "key"),
        "the old name bfloat16 does not count here: Accelerate puts a bf16 block beside it that "
        "is off, and training runs in fp32 unless the script asks for bf16",
        Consequence.DIFFERS,
        help="rename it to bf16",
        confidence=Confidence.MEDIUM,
        severity=Severity.WARNING,
    )


def _severity(asked: Request) -> Severity:
    """What may be meant for another purpose of the script is not called an error."""
    return Severity.ERROR if asked.confidence is Confidence.HIGH else Severity.WARNING
