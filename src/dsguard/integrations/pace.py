"""What a run has consumed since the last look, as a trainer's logger takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dsguard.runtime import Guard, Summary

PREFIX = "dsguard/"


class Pace:
    """The counts of a guard between two looks."""

    def __init__(self) -> None:
        self._before: Summary | None = None

    def metrics(self, guard: Guard) -> dict[str, float]:
        """Metrics by name; empty where the optimizer has not stepped since the last look.

        ``dsguard/samples_per_step`` (all ranks) and ``dsguard/micro_batches_per_step`` are means
        over the steps since the last look, ``dsguard/skipped_steps`` and ``dsguard/findings``
        totals. Samples are left out where the batches do not show them. With ``balance_every``
        also ``dsguard/imbalance``, ``dsguard/waiting`` and ``dsguard/padding``, as measured last.
        """
        now, before = guard.summary(), self._before
        steps = now.optimizer_steps - (before.optimizer_steps if before else 0)
        if steps <= 0:
            return {}
        self._before = now
        closed = _total(now.windows) - (_total(before.windows) if before else 0)
        samples = _total(now.samples_per_step) - (_total(before.samples_per_step) if before else 0)
        metrics = {
            f"{PREFIX}micro_batches_per_step": closed / steps,
            f"{PREFIX}skipped_steps": float(now.skipped_steps),
            f"{PREFIX}findings": float(sum(now.findings.values())),
        }
        if samples:
            metrics[f"{PREFIX}samples_per_step"] = samples / steps
        for name in ("imbalance", "waiting", "padding"):
            measured = getattr(guard.balance, name, None)
            if measured is not None:
                metrics[f"{PREFIX}{name}"] = measured
        return metrics


def _total(histogram: Mapping[int, int]) -> int:
    return sum(value * times for value, times in histogram.items())
