"""Settings that a run on the CPU refuses; see refused_by_cpu.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.values import written
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Exported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_VARIABLE = "DS_ACCELERATOR"
_NO_FP16_SINCE = Version("0.13.0")
_FP16_BY_PROCESSOR_SINCE = Version("0.16.8")
_NO_GDS_SINCE = Version("0.15.0")
_SUPER_OFFLOAD_SINCE = Version("0.18.0")


@rule(
    code="DSG624",
    slug="refused-by-cpu",
    summary="fp16, SuperOffload or GPUDirect Storage in a run on the CPU",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="raises ValueError: Type fp16 is not supported, or AssertionError about GDS",
    when=(Exported(_VARIABLE),),
)
def refused_by_cpu(case: Case, report: Reporter) -> Iterator[Finding]:
    """The variable that picks DeepSpeed's accelerator is part of the command."""
    launch, release = case.launch, Version(case.target.version)
    variable = launch.variable(_VARIABLE) if launch is not None else None
    if launch is None or variable is None or variable.value != "cpu":
        return
    because = (Because(_VARIABLE, "cpu", variable.origin()),)
    enabled = written(case.document, "fp16.enabled")
    if (
        enabled is not None
        and enabled.origin.location is not None
        and case.facts.value("precision") == "fp16"
        and _NO_FP16_SINCE <= release < _FP16_BY_PROCESSOR_SINCE
    ):
        yield report(
            enabled.origin.location,
            "fp16 is enabled, and DeepSpeed's CPU accelerator has no fp16 in this release; "
            "deepspeed.initialize stops with ValueError",
            Consequence.LATE,
            because=because,
            help="train in bf16 or fp32",
        )
    moved = written(case.document, "zero_optimization.offload_optimizer.super_offload")
    if (
        moved is not None
        and moved.value is True
        and moved.origin.location is not None
        and case.facts.value("zero_stage") == 3
        and case.facts.value("offload_optimizer") == "cpu"
        and release >= _SUPER_OFFLOAD_SINCE
    ):
        yield report(
            moved.origin.location,
            "super_offload is true, which works with CUDA only; deepspeed.initialize stops with "
            "AssertionError",
            Consequence.LATE,
            because=because,
            help="remove it",
        )
    direct = written(case.document, "aio.use_gds")
    if (
        direct is not None
        and direct.value is True
        and direct.origin.location is not None
        and release >= _NO_GDS_SINCE
    ):
        yield report(
            direct.origin.location,
            "aio.use_gds is true, which works with CUDA only; DeepSpeed stops when it reads the "
            "config",
            Consequence.REFUSED,
            because=because,
            help="remove it",
        )
