"""What there is to say about a recorded run, version 1.

These classes are the only description of what ``dsguard report --output-format json`` prints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from dsguard import __version__
from dsguard.model.record import HeaderLine

_DESCRIBED: dict[str, Any] = {"use_attribute_docstrings": True}


@dataclass(kw_only=True)
class Start:
    """One start of the training: what one guard wrote from its header to its end."""

    header: HeaderLine
    """What the header says."""
    first_step: int | None
    """The number of its first step in the run; null where it took none."""
    steps: int
    """Optimizer steps that it took."""
    ranks: int
    """Ranks of which there is a record."""
    finished: bool | None
    """Whether the guard was closed at a normal end; null without a summary (killed, or running)."""
    seconds: float | None
    """Seconds from its header to its last line; null where there is none."""

    __pydantic_config__ = _DESCRIBED


@dataclass(kw_only=True)
class WindowKind:
    """Windows alike: optimizer steps of as many micro-batches where as many were expected."""

    micro_batches: int
    """Micro-batches on this rank in one optimizer step."""
    expected: int | None
    """The accumulation that held when the window was opened; null where nobody said one."""
    steps: int
    """How many such steps."""
    first_step: int
    """The first of them."""

    __pydantic_config__ = _DESCRIBED


@dataclass(kw_only=True)
class StepSize:
    """Steps that consumed as many samples."""

    samples: int
    """Samples in one optimizer step over all ranks."""
    steps: int
    """How many such steps."""

    __pydantic_config__ = _DESCRIBED


@dataclass(kw_only=True)
class RankTokens:
    """What one rank was given."""

    rank: int
    """The rank."""
    tokens: int
    """Tokens of all steps where they are known, padding included."""
    share: float
    """This number over the mean of all ranks: 1 where all have as many."""

    __pydantic_config__ = _DESCRIBED


@dataclass(kw_only=True)
class Spread:
    """A value over the run; steps where it is unknown or not finite are left out."""

    minimum: float
    """The lowest."""
    mean: float
    """The mean over steps."""
    maximum: float
    """The highest."""
    maximum_step: int
    """The step with the highest."""
    last: float
    """The last."""

    __pydantic_config__ = _DESCRIBED


@dataclass(kw_only=True)
class Violation:
    """A finding of the guard, the same on several ranks counted once."""

    code: str
    """The code of the rule, such as DSG903."""
    rule: str
    """The slug of the rule."""
    severity: Literal["error", "warning", "info"]
    """How bad it is."""
    message: str
    """One sentence with the numbers in it, as the rank that found it first said it."""
    file: str | None
    """The file of the training script that was running."""
    line: int | None
    """The line in that file, from 1."""
    help: str | None
    """A way out in words."""
    first_step: int | None
    """The step in which it was found first; null where it was found after the last step."""
    ranks: list[int]
    """The ranks that found it."""
    times: int | None
    """How often the rule found something on the rank with the most; null where none says."""

    __pydantic_config__ = _DESCRIBED


@dataclass(kw_only=True)
class Overview:
    """What `dsguard report --output-format json` prints."""

    version: Literal[1] = 1
    """The version of this format."""
    dsguard: str = __version__
    """The release of dsguard that read the record."""
    record: str
    """The file that was read, as it was named."""
    starts: list[Start]
    """Each start of the training that the file holds."""
    steps: int
    """Optimizer steps, skipped ones included."""
    skipped_steps: int
    """Steps that did not update the weights (overflow)."""
    not_finite_norms: int
    """Steps whose gradient norm was infinite or not a number."""
    micro_batches: int
    """Backward passes on rank 0 in these steps."""
    pending_micro_batches: int | None
    """Backward passes after the last step; null where no summary says."""
    windows: list[WindowKind]
    """Windows by size, the most frequent first, at most 50 kinds."""
    off_steps: int
    """Steps whose window had fewer or more micro-batches than expected."""
    samples_per_step: list[StepSize]
    """Steps by the samples of all ranks, the most frequent first, at most 50 kinds."""
    samples: int
    """Samples of all ranks in the steps where they are known."""
    tokens: int | None
    """Tokens of all recorded ranks, padding included; null where none are known."""
    padding: float | None
    """The part of rank 0's tokens that is padding, 0 to 1; null where it is not known."""
    rank_tokens: list[RankTokens]
    """Tokens by rank."""
    imbalance: float | None
    """The tokens of the rank with the most over the mean, minus 1; null below two ranks."""
    grad_norm: Spread | None
    """The gradient norm before clipping; null where it is never known."""
    learning_rate: Spread | None
    """The highest learning rate of the parameter groups; null where it is never known."""
    loss_scale: Spread | None
    """The loss scale of fp16; null without it."""
    step_seconds: Spread | None
    """Seconds from one step to the next, on the host's clock; null below two steps."""
    violations: list[Violation]
    """What the guard found, the worst first, then by step."""
    notes: list[str]
    """What is not complete about the record."""

    __pydantic_config__ = _DESCRIBED
