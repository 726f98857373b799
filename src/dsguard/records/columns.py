"""The steps of a record as columns, so that a long run fits into memory."""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dsguard.model.record import Real, StepLine

UNKNOWN = math.nan
_LONGEST = 1e12
"""Seconds; longer than any run, and short enough to add up."""


class Columns:
    """One entry per optimizer step of one rank; ``UNKNOWN`` where a line says null.

    What is not finite is no number to draw: its entry is ``UNKNOWN``, and for a gradient norm
    its index is in ``not_finite``.
    """

    def __init__(self) -> None:
        self.step = array("q")
        self.micro_batches = array("q")
        self.expected = array("d")
        self.samples = array("d")
        self.tokens = array("d")
        self.tokens_unpadded = array("d")
        self.grad_norm = array("d")
        self.learning_rate = array("d")
        self.loss_scale = array("d")
        self.seconds = array("d")
        self.skipped: list[int] = []
        """Indexes of the steps that were not applied."""
        self.not_finite: list[int] = []

    def __len__(self) -> int:
        return len(self.step)

    def add(self, line: StepLine) -> None:
        """Append one step."""
        index = len(self.step)
        self.step.append(line.step)
        self.micro_batches.append(line.micro_batches)
        self.expected.append(_known(line.expected))
        self.samples.append(_known(line.samples))
        self.tokens.append(_known(line.tokens))
        self.tokens_unpadded.append(_known(line.tokens_unpadded))
        self.learning_rate.append(_known(line.learning_rate))
        self.loss_scale.append(_known(line.loss_scale))
        self.seconds.append(max(-_LONGEST, min(line.seconds, _LONGEST)))
        self.grad_norm.append(_known(line.grad_norm))
        if line.grad_norm is not None and math.isnan(self.grad_norm[index]):
            self.not_finite.append(index)
        if not line.applied:
            self.skipped.append(index)


def _known(value: Real | None) -> float:
    known = UNKNOWN if value is None else float(value)
    return known if math.isfinite(known) else UNKNOWN
