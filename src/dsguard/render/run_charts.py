"""What the page of a recorded run draws: few numbers, however long the run was.

Values lie in at most :data:`BUCKETS` buckets of neighbouring steps, each with its lowest, mean
and highest value. Steps that are out of the ordinary are all kept, one by one.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dsguard.records.buckets import Buckets, buckets, edges
from dsguard.records.overview import gravity, off, step_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dsguard.records.report import Overview
    from dsguard.records.run import RecordedRun

BUCKETS = 1200
_LINES = 8
"""Ranks that get a line of their own; more are drawn as lowest, mean and highest."""


def charts(run: RecordedRun, told: Overview) -> dict[str, Any]:
    """The data of the page, as JSON can hold it.

    ``from`` and ``to`` are the first and last step of each bucket. A chart has series, each
    with one value a bucket (``mean``, and ``low`` and ``high`` where a bucket holds several
    steps), and names of marks. The steps of a mark are told as distances.
    """
    cuts = edges(len(run.columns), BUCKETS)
    return {
        "from": [run.position[start] for start, _ in pairwise(cuts)],
        "to": [run.position[end - 1] for _, end in pairwise(cuts)],
        "starts": [start.first_step for start in told.starts[1:] if start.first_step],
        "violations": [
            {"step": one.first_step, "severity": one.severity}
            for one in told.violations
            if one.first_step is not None
        ],
        "marks": _marks(run, told),
        "charts": [chart for chart in _charts(run, told, cuts) if chart["series"]],
    }


def _charts(run: RecordedRun, told: Overview, cuts: Sequence[int]) -> Iterator[dict[str, Any]]:
    columns = run.columns
    expected = _line("expected", columns.expected, cuts, stepped=True)
    window = _series("micro-batches", columns.micro_batches, cuts, bars=True)
    if window and expected:
        window[0]["against"] = expected[0]["mean"]
    yield _chart(
        "windows",
        "Micro-batches in each window",
        "Every bar ends at the boundary that was observed; the dashed line is the boundary that"
        " was expected.",
        [*window, *expected],
        marks=("off", "skipped"),
        zero=True,
        whole=True,
    )
    if told.off_steps:
        yield _chart(
            "drift",
            "Observed boundary against the expected one",
            "Micro-batches that all windows so far hold more (or less) than expected.",
            _series("micro-batches ahead", _drift(run), cuts, stepped=True),
            marks=("off",),
            whole=True,
        )
    yield _chart(
        "samples",
        "Samples in each step, all ranks",
        "" if run.samples_by_rank else "Every rank is taken to consume as many as the first one.",
        [
            *_series("samples", run.samples, cuts),
            *_line("train_batch_size", _train_batch(run, told), cuts, stepped=True),
        ],
        marks=("skipped",),
        zero=True,
        whole=True,
    )
    norm = _series("norm", columns.grad_norm, cuts)
    clipping = told.starts[-1].header.gradient_clipping
    if norm and isinstance(clipping, (int, float)) and clipping > 0:
        norm += _line("clipped at", [clipping] * len(columns), cuts)
    yield _chart(
        "norm",
        "Gradient norm before clipping",
        "",
        norm,
        marks=("infinite", "skipped"),
        log=True,
        zero=True,
    )
    yield _chart("rate", "Learning rate", "", _series("rate", columns.learning_rate, cuts))
    yield _chart(
        "scale",
        "Loss scale",
        "",
        _series("scale", columns.loss_scale, cuts, stepped=True),
        marks=("skipped",),
        log=True,
        zero=True,
    )
    yield _chart(
        "tokens",
        "Tokens in each step, by rank",
        "Padding included.",
        _tokens(run, cuts),
        zero=True,
    )
    yield _chart(
        "time",
        "Seconds from step to step",
        "On the host's clock: the device may lag behind.",
        _series("seconds", step_seconds(run), cuts),
        log=True,
        zero=True,
    )


def _chart(
    name: str,
    title: str,
    about: str,
    series: list[dict[str, Any]],
    *,
    marks: tuple[str, ...] = (),
    log: bool = False,
    zero: bool = False,
    whole: bool = False,
) -> dict[str, Any]:
    return {
        "id": name,
        "title": title,
        "about": about,
        "series": series,
        "marks": marks,
        "log": log,
        "zero": zero,
        "whole": whole,
    }


def _series(
    name: str, values: Sequence[float], cuts: Sequence[int], **style: bool
) -> list[dict[str, Any]]:
    """A series of its own colour; none where no value is known."""
    made = buckets(values, cuts)
    if all(mean is None for mean in made.mean):
        return []
    return [{"name": name, "colour": "a", **_values(made), **style}]


def _line(
    name: str, values: Sequence[float], cuts: Sequence[int], **style: bool
) -> list[dict[str, Any]]:
    """What a series is compared with: a dashed line."""
    made = buckets(values, cuts)
    if all(mean is None for mean in made.mean):
        return []
    means = [_short(mean) for mean in made.mean]
    return [{"name": name, "colour": "b", "mean": means, "dashed": True, **style}]


def _values(made: Buckets) -> dict[str, list[float | None]]:
    values = {"mean": [_short(mean) for mean in made.mean]}
    if made.low != made.high:
        values |= {"low": [_short(low) for low in made.low]}
        values |= {"high": [_short(high) for high in made.high]}
    return values


def _short(value: float | None) -> float | None:
    """Six digits, whole numbers without a point: enough for a drawing, and half the bytes."""
    if value is None:
        return None
    short = value if value == int(value) and abs(value) < 1e9 else float(f"{value:.6g}")
    return int(short) if short == int(short) and abs(short) < 1e15 else short


def _tokens(run: RecordedRun, cuts: Sequence[int]) -> list[dict[str, Any]]:
    if len(run.tokens) > _LINES:
        columns = list(run.tokens.values())
        made = [buckets(column, cuts).mean for column in columns]
        by_bucket = [[m for m in means if m is not None] for means in zip(*made, strict=True)]
        spread = Buckets(
            [min(means, default=None) for means in by_bucket],
            [math.fsum(means) / len(means) if means else None for means in by_bucket],
            [max(means, default=None) for means in by_bucket],
        )
        return [{"name": f"{len(columns)} ranks", "colour": "a", **_values(spread)}]
    lines = []
    for index, (rank, column) in enumerate(run.tokens.items()):
        means = [_short(mean) for mean in buckets(column, cuts).mean]
        lines.append({"name": f"rank {rank}", "colour": f"r{index}", "mean": means})
    return lines


def _train_batch(run: RecordedRun, told: Overview) -> Sequence[float]:
    values: list[float] = []
    for start in told.starts:
        size = start.header.train_batch_size
        values += [math.nan if size is None else size] * start.steps
    return values


def _drift(run: RecordedRun) -> list[float]:
    ahead, drift = 0, []
    for size, expected in zip(run.columns.micro_batches, run.columns.expected, strict=True):
        if off(size, expected):
            ahead += size - int(expected)
        drift.append(float(ahead))
    return drift


def _marks(run: RecordedRun, told: Overview) -> dict[str, Any]:
    columns = run.columns
    sizes = zip(columns.micro_batches, columns.expected, strict=True)
    late = (index for index, (size, expected) in enumerate(sizes) if off(size, expected))
    found = {
        "off": ("off boundary", gravity(told), late),
        "skipped": ("skipped", "warning", columns.skipped),
        "infinite": ("not finite", "error", columns.not_finite),
    }
    return {
        name: {"name": words, "colour": colour, "at": _distances(run, indexes)}
        for name, (words, colour, indexes) in found.items()
    }


def _distances(run: RecordedRun, indexes: Iterable[int]) -> list[int]:
    last, distances = 0, []
    for index in indexes:
        distances.append(run.position[index] - last)
        last = run.position[index]
    return distances
