"""activation_checkpointing that nobody applies; see activation_checkpointing_not_applied.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.values import pointer_of
from dsguard.frontends.base import FrontEndName
from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.model.tree import Object
from dsguard.rules.conditions import Written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_BLOCK = "activation_checkpointing"
_CONTIGUOUS = f"{_BLOCK}.contiguous_memory_optimization"
_CONFIGURES = "checkpointing.configure("


@rule(
    code="DSG720",
    slug="activation-checkpointing-not-applied",
    summary="activation_checkpointing without deepspeed.checkpointing.configure()",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="deepspeed.checkpointing.is_configured() is False after deepspeed.initialize",
    when=(Written(_BLOCK),),
)
def activation_checkpointing_not_applied(case: Case, report: Reporter) -> Iterator[Finding]:
    """The engine never looks at the block; a call of the script takes it up."""
    document = case.document
    node = document.get(f"/{_BLOCK}") if document is not None and case.recognised else None
    if document is None or not isinstance(node, Object) or case.front_end is None:
        return
    wanted = [name for name, value in node.value.items() if value is True]
    text = _text(case)
    if not wanted:
        return
    if text is not None and _CONFIGURES in text:
        yield from _refused(case, report, node)
        return
    trainer = case.front_end.name is FrontEndName.TRANSFORMERS
    if text is None and not trainer:
        return  # a module that was not read may do it
    if not trainer and ("deepspeed.initialize(" not in str(text) or "checkpointing" in str(text)):
        return
    who = "HF Trainer" if trainer else f"{case.script.source.name}" if case.script else "the script"
    yield report(
        document.locate(pointer_of(_BLOCK), "key"),
        f"{_BLOCK} ({', '.join(wanted)}) has no effect: {who} does not call "
        "deepspeed.checkpointing.configure(), which alone reads it",
        Consequence.IGNORED,
        confidence=Confidence.HIGH if trainer and text is not None else Confidence.MEDIUM,
        help="use --gradient_checkpointing" if trainer else "call it, or remove the block",
    )


def _text(case: Case) -> str | None:
    script = case.script
    return script.source.text if script is not None and not script.unreadable else None


def _refused(case: Case, report: Reporter, node: Object) -> Iterator[Finding]:
    """configure() asks for what the one buffer needs."""
    given = node.value
    if given.get("contiguous_memory_optimization") is not True or case.document is None:
        return
    lacks = [
        name
        for name, there in (
            ("partition_activations", given.get("partition_activations") is True),
            ("number_checkpoints", given.get("number_checkpoints") is not None),
        )
        if not there
    ]
    if not lacks:
        return
    at = case.document.locate(pointer_of(_CONTIGUOUS))
    yield report(
        at,
        f"{_CONTIGUOUS} is true without {' and '.join(lacks)}; "
        "deepspeed.checkpointing.configure() stops with AssertionError",
        Consequence.LATE,
        severity=Severity.ERROR,
        # The call may give the missing value itself.
        confidence=Confidence.MEDIUM,
        help=f"add {' and '.join(lacks)}",
    )
