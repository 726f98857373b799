"""A recorded run in the terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from dsguard.model.finding import Severity
from dsguard.records.buckets import buckets, edges
from dsguard.records.overview import gravity, off
from dsguard.render.characters import sentence
from dsguard.render.line import Line
from dsguard.render.paint import FAINT, GOOD, SEVERITY, paint
from dsguard.render.run_wording import (
    amount,
    duration,
    ending,
    moment,
    number,
    place,
    seen,
    setting,
    window,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dsguard.records.report import Overview, Spread, Violation
    from dsguard.records.run import RecordedRun

_LEVELS = {True: "▁▂▃▄▅▆▇█", False: "_.-=+*#@"}
_LABEL = 15
_SPARK = 40
_SHOWN = 12
"""Rows of a list; the rest are counted."""

_Line: TypeAlias = tuple[tuple[str, str], ...]
"""Texts with their styles."""


def render_run(run: RecordedRun, told: Overview, *, color: bool, unicode: bool) -> str:
    """What the run has done: starts, windows, samples, norms, tokens, findings."""
    lines = [*_head(told), (), *_windows(told), *_samples(told), *_skipped(told), ()]
    columns = run.columns
    lines += _spread("gradient norm", told.grad_norm, columns.grad_norm, unicode)
    lines += _spread("learning rate", told.learning_rate, columns.learning_rate, unicode)
    lines += _spread("loss scale", told.loss_scale, columns.loss_scale, unicode)
    lines += _tokens(told)
    lines += [(), *_violations(told)]
    if told.notes:
        lines += [(), *(_row("note" if not i else "", n) for i, n in enumerate(told.notes))]
    # Paths and messages come from the file: whatever is shown goes through here.
    made = [
        Line.assemble(*((sentence(part, unicode=unicode), style) for part, style in line))
        for line in lines
    ]
    return paint([line.trimmed() for line in made], color=color)


def _line(*parts: str | tuple[str, str]) -> _Line:
    return tuple((part, "") if isinstance(part, str) else part for part in parts)


def _row(label: str, *parts: str | tuple[str, str]) -> _Line:
    return _line((f"{label:{_LABEL}}", "bold"), *parts)


def _head(told: Overview) -> Iterator[_Line]:
    ranks = max(start.ranks for start in told.starts)
    yield _line(
        (told.record, "bold"),
        f": {amount(told.steps, 'optimizer step')}, {amount(ranks, 'rank')}",
    )
    for index, start in enumerate(told.starts[:_SHOWN]):
        label = "started" if not index else "again"
        first = f" at step {start.first_step:,}" if index and start.first_step else ""
        yield _row(
            label,
            f"{moment(start.header.started_at)}{first}, {amount(start.steps, 'step')} in "
            f"{duration(start.seconds)}, {ending(start)}",
        )
    yield from _more(len(told.starts))
    yield _row("with", ", ".join(f"{name} {value}" for name, value in setting(told.starts[-1])))


def _windows(told: Overview) -> Iterator[_Line]:
    for index, kind in enumerate(told.windows[:_SHOWN]):
        bad = off(kind.micro_batches, kind.expected)
        expected = "?" if kind.expected is None else kind.expected
        yield _row(
            "windows" if not index else "",
            f"{amount(kind.micro_batches, 'micro-batch', 'micro-batches'):18} "
            f"expected {expected:<5} {amount(kind.steps, 'step'):16} ",
            (window(kind), SEVERITY[Severity(gravity(told))] if bad else GOOD),
            "" if not bad else f", first at step {kind.first_step:,}",
        )
    yield from _more(len(told.windows))
    if told.pending_micro_batches:
        waiting = amount(told.pending_micro_batches, "micro-batch", "micro-batches")
        yield _row("", (f"{waiting} after the last step never reached the weights", "yellow"))


def _samples(told: Overview) -> Iterator[_Line]:
    asked = told.starts[-1].header.train_batch_size
    for index, size in enumerate(told.samples_per_step[:_SHOWN]):
        off = asked is not None and size.samples != asked
        yield _row(
            "samples" if not index else "",
            f"{size.samples:,} in one step".ljust(34),
            f"{amount(size.steps, 'step'):16} ",
            (f"train_batch_size is {asked:,}", "yellow") if off else "",
        )
    yield from _more(len(told.samples_per_step))


def _skipped(told: Overview) -> Iterator[_Line]:
    words = f"{told.skipped_steps:,} of {amount(told.steps, 'step')}"
    yield _row("skipped", (words, "yellow" if told.skipped_steps else ""))


def _spread(
    label: str, spread: Spread | None, values: Sequence[float], unicode: bool
) -> Iterator[_Line]:
    if spread is None:
        return
    yield _row(label, (_spark(values, unicode), "cyan"))
    yield _row(
        "",
        f"lowest {number(spread.minimum)}, mean {number(spread.mean)}, highest "
        f"{number(spread.maximum)} at step {spread.maximum_step:,}, last {number(spread.last)}",
    )


def _spark(values: Sequence[float], unicode: bool) -> str:
    means = buckets(values, edges(len(values), _SPARK)).mean
    known = [mean for mean in means if mean is not None]
    low, high = min(known), max(known)
    if low > 0 and high / low > 100:  # a norm that explodes would hide all before it
        means = [None if mean is None else math.log(mean) for mean in means]
        low, high = math.log(low), math.log(high)
    levels = _LEVELS[unicode]
    top = len(levels) - 1
    return "".join(
        " "
        if mean is None
        else levels[round((mean - low) / (high - low) * top) if high > low else 0]
        for mean in means
    )


def _tokens(told: Overview) -> Iterator[_Line]:
    if told.tokens is None:
        return
    padding = f", {told.padding:.1%} of rank 0's are padding" if told.padding is not None else ""
    yield _row("tokens", f"{told.tokens:,}{padding}")
    if told.imbalance is None:
        return
    off = told.imbalance > 0.05
    words = f"the rank with the most has {told.imbalance:.1%} more than the mean"
    yield _row("", (words, "yellow" if off else ""))
    order = sorted(told.rank_tokens, key=lambda one: -one.tokens)
    shown = order if len(order) <= _SHOWN else [*order[: _SHOWN // 2], *order[-_SHOWN // 2 :]]
    for one in shown:
        yield _row("", f"rank {one.rank:<5} {one.tokens:>16,} tokens, {one.share:.3f} of the mean")


def _violations(told: Overview) -> Iterator[_Line]:
    if not told.violations:
        yield _row("found", ("nothing", GOOD))
    for violation in told.violations:
        yield from _violation(violation)


def _violation(violation: Violation) -> Iterator[_Line]:
    severity = Severity(violation.severity)
    yield _line(
        (f"{violation.severity}[{violation.code}]", SEVERITY[severity]),
        f": {violation.message}  ({violation.rule})",
    )
    where = place(violation)
    yield _line((f"  {seen(violation)}" + (f", in {where}" if where else ""), FAINT))
    if violation.help:
        yield _line(f"  help: {violation.help}")


def _more(count: int) -> Iterable[_Line]:
    return [_row("", (f"and {count - _SHOWN} more", FAINT))] if count > _SHOWN else []
