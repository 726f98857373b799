"""What a run has really consumed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dsguard.runtime.windows import Windows


@dataclass(frozen=True)
class Summary:
    """The counts of one guard, on its rank.

    ``micro_batches``: backward passes. ``optimizer_steps`` includes ``skipped_steps``
    (overflow). ``windows`` maps micro-batches in one optimizer step to the number of such
    steps. ``samples_per_step`` maps samples in one optimizer step over all ranks to the number
    of such steps; every rank is taken to consume as many as this one. Steps whose batches did
    not show their size are left out. ``pending_micro_batches`` wait for the next step.
    ``findings`` maps rules to how often they found something.
    """

    micro_batches: int
    optimizer_steps: int
    skipped_steps: int
    windows: Mapping[int, int]
    samples_per_step: Mapping[int, int]
    pending_micro_batches: int
    data_parallel_size: int
    findings: Mapping[str, int]

    @classmethod
    def of(cls, windows: Windows, data_parallel_size: int, findings: Mapping[str, int]) -> Summary:
        """Read the counts as they are now."""
        return cls(
            micro_batches=windows.micro_batches,
            optimizer_steps=windows.optimizer_steps,
            skipped_steps=windows.skipped_steps,
            windows=dict(windows.sizes),
            samples_per_step={
                samples * data_parallel_size: steps for samples, steps in windows.samples.items()
            },
            pending_micro_batches=windows.open,
            data_parallel_size=data_parallel_size,
            findings=dict(findings),
        )

    def __str__(self) -> str:
        """A few lines for a log."""
        lines = [
            f"{self.optimizer_steps} optimizer steps ({self.skipped_steps} skipped) "
            f"from {self.micro_batches} micro-batches, {self.pending_micro_batches} pending"
        ]
        for size, steps in self.windows.items():
            lines.append(f"  {size} micro-batches in one step: {steps} times")
        for samples, steps in self.samples_per_step.items():
            lines.append(f"  {samples} samples in one step: {steps} times")
        for rule, times in self.findings.items():
            lines.append(f"  {rule}: {times} times")
        return "\n".join(lines)
