"""The lines of a record: what a guard writes down about a run, and what is read from it.

A record is a file of JSON lines, one file a rank. These classes are the only description of a
line: the guard writes them, the reader makes them from the file, and the published JSON Schema
is made from them. ``None`` (``null``) says that a value is not known. Readers ignore keys that
they do not know: later releases may add some.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

RECORD_VERSION = 1

Real: TypeAlias = float | Literal["NaN", "Infinity", "-Infinity"]
"""A number; JSON has no other words for what is not finite than these strings."""

_DESCRIBED: dict[str, Any] = {"use_attribute_docstrings": True}
"""Tells pydantic, where a reader uses it, that the texts below the fields describe them."""


@dataclass(kw_only=True)
class FoundLine:
    """A finding of the guard, when it was made first."""

    code: str
    """The code of the rule, such as DSG903."""
    rule: str
    """The slug of the rule."""
    severity: Literal["error", "warning", "info"]
    """How bad it is."""
    message: str
    """One sentence with the numbers in it, without a full stop."""
    file: str | None
    """The file of the training script that was running; null where none was."""
    line: int | None
    """The line in that file, from 1."""
    help: str | None
    """A way out in words."""

    __pydantic_config__ = _DESCRIBED


@dataclass(kw_only=True)
class HeaderLine:
    """The first line: what runs here. One more begins each continuation of the file."""

    kind: Literal["header"] = "header"
    """Always header."""
    version: Literal[1] = 1
    """The version of this format."""
    dsguard: str
    """The release of dsguard that writes."""
    deepspeed: str | None
    """The release of DeepSpeed, where it is loaded."""
    torch: str | None
    """The release of PyTorch, where it is loaded."""
    engine: str
    """The class of the engine, such as DeepSpeedEngine."""
    started_at: str
    """When the guard was attached: UTC, as in RFC 3339. Clocks of several hosts may differ."""
    rank: int
    """The rank that writes this file."""
    world_size: int
    """The number of ranks."""
    data_parallel_size: int
    """The number of ranks that consume different samples."""
    gradient_accumulation_steps: int | None
    """Micro-batches in one optimizer step, as the engine has it when the guard is attached."""
    micro_batch_size: int | None
    """Samples of one micro-batch on one rank, as the engine has it."""
    train_batch_size: int | None
    """Samples of one optimizer step over all ranks, as the engine has it."""
    gradient_clipping: Real | None
    """The norm that gradients are clipped at; 0 means no clipping."""
    zero_stage: int | None
    """The ZeRO stage, 0 to 3."""
    precision: str | None
    """fp32, fp16 or bf16."""

    __pydantic_config__ = _DESCRIBED


@dataclass(kw_only=True)
class StepLine:
    """One optimizer step, counted on this rank."""

    kind: Literal["step"] = "step"
    """Always step."""
    step: int
    """Optimizer steps so far, this one included, from 1; skipped ones count."""
    rank: int
    """The rank that writes this file."""
    micro_batches: int
    """Backward passes since the step before."""
    expected: int | None
    """The accumulation that held when the first of them ran; null where nobody says one."""
    samples: int | None
    """Samples in their batches on this rank; null where the batches did not show their size."""
    tokens: int | None
    """Elements of input_ids in their batches on this rank, padding included."""
    tokens_unpadded: int | None
    """Those of them that attention_mask leaves in; null where the mask is not on the CPU."""
    applied: bool
    """Whether the weights were updated: false for a step that was skipped (overflow)."""
    grad_norm: Real | None
    """The norm of all gradients before clipping, as engine.get_global_grad_norm() tells it."""
    learning_rate: Real | None
    """The highest learning rate of the parameter groups in this step."""
    loss_scale: Real | None
    """The loss scale of the fp16 optimizer, as this step used it; null without fp16."""
    seconds: float
    """Seconds since the header, on this host's clock; the device may still be at work."""
    findings: list[FoundLine] = field(default_factory=list)
    """What was found for the first time since the step before."""

    __pydantic_config__ = _DESCRIBED


@dataclass(kw_only=True)
class SummaryLine:
    """The last line, written when the guard is closed; a run that was killed has none."""

    kind: Literal["summary"] = "summary"
    """Always summary."""
    rank: int
    """The rank that writes this file."""
    finished: bool
    """False where the run ended by an exception or another guard took over."""
    optimizer_steps: int
    """Optimizer steps, skipped ones included."""
    skipped_steps: int
    """Steps that did not update the weights."""
    micro_batches: int
    """Backward passes."""
    pending_micro_batches: int
    """Backward passes after the last optimizer step."""
    windows: dict[int, int]
    """Micro-batches in one optimizer step, and the number of such steps."""
    samples_per_step: dict[int, int]
    """Samples in one optimizer step over all ranks, and the number of such steps."""
    counts: dict[str, int]
    """How often each rule has found something, by its slug."""
    findings: list[FoundLine]
    """What was found for the first time after the last step."""
    seconds: float
    """Seconds since the header."""

    __pydantic_config__ = _DESCRIBED


Line: TypeAlias = HeaderLine | StepLine | SummaryLine


def real(value: float | None) -> Real | None:
    """A number as a line holds it."""
    if value is None:
        return None
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
