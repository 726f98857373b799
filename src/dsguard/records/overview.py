"""What a recorded run comes to: the numbers that a person wants first, and the findings."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

from dsguard.records.report import (
    Overview,
    RankTokens,
    Spread,
    Start,
    StepSize,
    Violation,
    WindowKind,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dsguard.model.record import FoundLine
    from dsguard.records.run import RecordedRun, Stretch

_KINDS = 50
"""Different windows and batches that are listed; the rest are counted together."""


def overview(run: RecordedRun) -> Overview:
    """Count and sum a run up; time is linear in its steps."""
    columns = run.columns
    kinds = _kinds(run)
    sizes = Counter(int(size) for size in run.samples if not math.isnan(size))
    by_rank = {
        rank: sum(int(count) for count in column if not math.isnan(count))
        for rank, column in run.tokens.items()
    }
    mean = sum(by_rank.values()) / len(by_rank) if by_rank else 0
    last = run.stretches[-1].first.summary
    return Overview(
        record=str(run.path).encode("utf-8", "backslashreplace").decode("utf-8"),
        starts=[_start(run, stretch) for stretch in run.stretches],
        steps=len(columns),
        skipped_steps=len(columns.skipped),
        not_finite_norms=len(columns.not_finite),
        micro_batches=sum(columns.micro_batches),
        pending_micro_batches=last.pending_micro_batches if last is not None else None,
        windows=kinds[:_KINDS],
        off_steps=sum(kind.steps for kind in kinds if off(kind.micro_batches, kind.expected)),
        samples_per_step=[
            StepSize(samples=samples, steps=steps) for samples, steps in sizes.most_common(_KINDS)
        ],
        samples=sum(samples * steps for samples, steps in sizes.items()),
        tokens=sum(by_rank.values()) if by_rank else None,
        padding=_padding(run),
        rank_tokens=[
            RankTokens(rank=rank, tokens=tokens, share=tokens / mean if mean else 1.0)
            for rank, tokens in by_rank.items()
        ],
        imbalance=max(by_rank.values()) / mean - 1 if len(by_rank) > 1 and mean else None,
        grad_norm=_spread(run.position, columns.grad_norm),
        learning_rate=_spread(run.position, columns.learning_rate),
        loss_scale=_spread(run.position, columns.loss_scale),
        step_seconds=_spread(run.position, step_seconds(run)),
        violations=violations(run),
        notes=list(run.notes),
    )


def off(micro_batches: int, expected: float | None) -> bool:
    """Whether a window ended elsewhere than expected; not where nothing was expected."""
    return expected is not None and not math.isnan(expected) and micro_batches != expected


def gravity(told: Overview) -> Literal["error", "warning"]:
    """How bad windows off the boundary are: a script may end some on purpose, as at an epoch."""
    return "error" if any(v.severity == "error" for v in told.violations) else "warning"


def step_seconds(run: RecordedRun) -> Sequence[float]:
    """Seconds from the step before to each step; unknown for the first step of a start."""
    seconds = run.columns.seconds
    starts = {stretch.at for stretch in run.stretches}
    return [
        math.nan if index in starts else now - seconds[index - 1]
        for index, now in enumerate(seconds)
    ]


def violations(run: RecordedRun) -> list[Violation]:
    """The findings of all ranks, the same one on several ranks told once."""
    by_kind: dict[tuple[Any, ...], Violation] = {}
    for stretch in run.stretches:
        for rank, step, found in _found(run, stretch):
            kind = (found.rule, found.severity, found.file, found.line)
            known = by_kind.get(kind)
            if known is None:
                by_kind[kind] = Violation(
                    **vars(found), first_step=step, ranks=[rank], times=_times(run, found.rule)
                )
            elif rank not in known.ranks:
                known.ranks.append(rank)
    order = ("error", "warning", "info")
    return sorted(
        by_kind.values(),
        key=lambda v: (order.index(v.severity), v.first_step is None, v.first_step or 0, v.code),
    )


def _found(run: RecordedRun, stretch: Stretch) -> Iterator[tuple[int, int | None, FoundLine]]:
    """Rank, step in the run and finding; what was found first comes first."""
    steps = stretch.first.columns.step
    positions = run.position[stretch.at : stretch.at + len(steps)]
    at = dict(zip(steps, positions, strict=True))
    told: list[tuple[int, int, FoundLine]] = []
    for rank, session in stretch.ranks.items():
        own = session.columns.step
        for index, found in session.findings:
            told.append((own[index] if index < len(own) else -1, rank, found))
    # -1: after the last step.
    for step, rank, found in sorted(told, key=lambda one: (one[0] < 0, one[0], one[1])):
        yield rank, at.get(step), found


def _times(run: RecordedRun, rule: str) -> int | None:
    most: int | None = None
    for stretch in run.stretches:
        told = [s.summary.counts.get(rule, 0) for s in stretch.ranks.values() if s.summary]
        if told:
            most = (most or 0) + max(told)
    return most


def _kinds(run: RecordedRun) -> list[WindowKind]:
    """Windows by size and expectation, the most frequent first."""
    kinds: dict[tuple[int, int | None], WindowKind] = {}
    columns = zip(run.position, run.columns.micro_batches, run.columns.expected, strict=True)
    for position, size, number in columns:
        expected = None if math.isnan(number) else int(number)
        kind = kinds.get((size, expected))
        if kind is None:
            kind = kinds[size, expected] = WindowKind(
                micro_batches=size, expected=expected, steps=0, first_step=position
            )
        kind.steps += 1
    return sorted(kinds.values(), key=lambda kind: (-kind.steps, kind.first_step))


def _start(run: RecordedRun, stretch: Stretch) -> Start:
    session = stretch.first
    steps, summary = len(session.columns), session.summary
    seconds = summary.seconds if summary is not None else None
    if seconds is None and steps:
        seconds = session.columns.seconds[-1]
    return Start(
        header=session.header,
        first_step=run.position[stretch.at] if steps else None,
        steps=steps,
        ranks=len(stretch.ranks),
        finished=summary.finished if summary is not None else None,
        seconds=seconds,
    )


def _padding(run: RecordedRun) -> float | None:
    tokens = unpadded = 0.0
    for total, real in zip(run.columns.tokens, run.columns.tokens_unpadded, strict=True):
        if not math.isnan(total) and not math.isnan(real):
            tokens, unpadded = tokens + total, unpadded + real
    return 1 - unpadded / tokens if tokens else None


def _spread(positions: Sequence[int], values: Sequence[float]) -> Spread | None:
    known = [(v, p) for v, p in zip(values, positions, strict=True) if not math.isnan(v)]
    if not known:
        return None
    highest, at = max(known, key=lambda pair: pair[0])
    return Spread(
        minimum=min(known)[0],
        mean=math.fsum(value for value, _ in known) / len(known),
        maximum=highest,
        maximum_step=at,
        last=known[-1][0],
    )
