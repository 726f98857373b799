"""16-bit master weights without DeepSpeedCPUAdam; see master_weights_without_offload.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.blocks import block
from dsguard.facts.optimizer_class import CPU_DEVICES, built
from dsguard.facts.values import written
from dsguard.model.fact import Origin, OriginKind
from dsguard.model.finding import Because, Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Is, Written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEYS = ("fp16.fp16_master_weights_and_grads", "bf16.bf16_master_weights_and_grads")
_COUNTS_WHEN_OFF_SINCE = Version("0.17.1")
"""From this release the switch counts even where its own block is not enabled."""


@rule(
    code="DSG404",
    slug="master-weights-without-offload",
    summary="16-bit master weights and gradients without DeepSpeedCPUAdam",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("precision", "zero_stage", "offload_optimizer"),
    oracle="deepspeed.initialize raises AssertionError: Master weights feature requires ZeRO "
    "Offload with DeepSpeedCPUAdam",
    when=(Is("zero_stage", 1, 2, 3), Written(*_KEYS)),
)
def master_weights_without_offload(case: Case, report: Reporter) -> Iterator[Finding]:
    """Without ZeRO it is refused earlier, as a combination of blocks."""
    if case.facts.value("zero_stage") not in (1, 2, 3):
        return
    for key in _KEYS:
        value = written(case.document, key)
        if value is None or value.value is not True or value.origin.location is None:
            continue
        precision, _, name = key.partition(".")
        off = case.facts.value("precision") != precision
        if off and Version(case.target.version) < _COUNTS_WHEN_OFF_SINCE:
            continue
        lacks = _lacks(case, precision)
        if lacks is None:
            continue
        because, why = lacks
        yield report(
            value.origin.location,
            f"DeepSpeed only does {name} with ZeRO-Offload and DeepSpeedCPUAdam, and {why}; "
            "deepspeed.initialize stops with AssertionError",
            Consequence.LATE,
            because=(because,),
            # The optimizer may be one that the script passes.
            confidence=Confidence.HIGH if block(case, "optimizer") else Confidence.MEDIUM,
            help='use {"device": "cpu"} as offload_optimizer and Adam or AdamW'
            + (", or bf16_optimizer_states without offload" if precision == "bf16" else ""),
        )


def _lacks(case: Case, precision: str) -> tuple[Because, str] | None:
    """What is missing, None where it is all there or cannot be known."""
    device = case.facts.known("offload_optimizer")
    if device.value not in CPU_DEVICES:
        states = written(case.document, "bf16.bf16_optimizer_states")
        if precision == "bf16" and states is not None and states.value is not False:
            return None
        return Because.of("offload_optimizer", device), "the optimizer is not offloaded"
    optimizer = block(case, "optimizer")
    what = built(case, optimizer) if optimizer is not None else None
    if optimizer is None or what is None or what.name == "DeepSpeedCPUAdam":
        return None
    origin = Origin(OriginKind.CONFIG, optimizer.type_at)
    reason = Because("optimizer.type", optimizer.type, origin)
    return reason, f"{optimizer.type} is built as {what.name}"
