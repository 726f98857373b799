"""A comparison of ways of batching in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from dsguard.render.balance_words import (
    ABOUT,
    COLUMNS,
    about_lengths,
    about_order,
    about_shape,
    figures,
    heaviest_step,
    notes,
    shown_ranks,
)
from dsguard.render.characters import sentence
from dsguard.render.line import Line
from dsguard.render.paint import FAINT, GOOD, paint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.data.comparison import Comparison
    from dsguard.data.report import Audit

_LABEL = 16
_BAR = 56
_STEP_BAR = 30
_RANKS = 8
"""Ranks that the picture of a step shows at most."""

_LEVELS = {True: " ▁▂▃▄▅▆▇█", False: " _.-=+*#@"}
_FILLS = {True: "█▒·", False: "#=."}
"""Useful work, padding, waiting."""

_STYLES = (GOOD, "yellow", "red")
_WORDS = ("useful", "padding", "waiting")

_Line: TypeAlias = list[tuple[str, str]]


def render_balance(name: str, told: Comparison, *, color: bool, unicode: bool) -> str:
    """Lengths, the figures of every way of batching, and pictures of where the time goes."""
    lines = [
        *_head(name, told, unicode),
        [],
        *_table(told),
        [],
        *_time(told, unicode),
        [],
        *_steps(told, unicode),
        [],
        *_order(told),
        *_problems(told),
        [],
        *_wrapped(notes(told)),
    ]
    made = [
        Line.assemble(*((_shown(part, unicode), style) for part, style in line)) for line in lines
    ]
    return paint([line.trimmed() for line in made], color=color)


def _shown(text: str, unicode: bool) -> str:
    return sentence(text, unicode=unicode)


def _row(label: str, *parts: tuple[str, str] | str) -> _Line:
    return [
        (f"{label:{_LABEL}}", "bold"),
        *((part, "") if isinstance(part, str) else part for part in parts),
    ]


def _head(name: str, told: Comparison, unicode: bool) -> Iterator[_Line]:
    yield [(name, "bold"), (f": {about_lengths(told)}", "")]
    levels = _LEVELS[unicode]
    histogram = told.lengths.histogram
    top, most = len(levels) - 1, max(histogram)
    bars = "".join(levels[0 if not n else max(1, round(n / most * top))] for n in histogram)
    yield _row(
        "lengths", f"{told.lengths.shortest:,} ", (bars, "cyan"), f" {told.lengths.longest:,}"
    )
    yield _row("with", about_shape(told))


def _table(told: Comparison) -> Iterator[_Line]:
    widths = [max(len(column), 8) + 2 for column in COLUMNS]
    yield [
        (" " * _LABEL, ""),
        *((f"{c:>{w}}", "bold") for c, w in zip(COLUMNS, widths, strict=True)),
    ]
    for way in told.ways:
        style = GOOD if way == "balanced" else ""
        cells = zip(figures(told, way), widths, strict=True)
        yield _row(way, *((f"{cell:>{width}}", style) for cell, width in cells))


def _time(told: Comparison, unicode: bool) -> Iterator[_Line]:
    yield [("What the time of all ranks goes into", "bold"), *_legend(unicode)]
    for way, audit in told.ways.items():
        width = _BAR * min(1.0, told.relative_time(way) / _longest(told))
        shares = (audit.shares.useful, audit.shares.padding, audit.shares.waiting)
        yield _row(way, *_bar(shares, max(1, round(width)), unicode))


def _longest(told: Comparison) -> float:
    return max(told.relative_time(way) for way in told.ways) or 1.0


def _legend(unicode: bool) -> Iterator[tuple[str, str]]:
    for fill, style, word in zip(_FILLS[unicode], _STYLES, _WORDS, strict=True):
        yield "  ", ""
        yield fill, style
        yield f" {word}", ""


def _bar(shares: tuple[float, ...], width: int, unicode: bool) -> Iterator[tuple[str, str]]:
    """Stretches of the three fills; rounded so that together they fill the width."""
    edge, reached = 0, 0.0
    for share, fill, style in zip(shares, _FILLS[unicode], _STYLES, strict=True):
        reached += share
        end = min(width, round(reached * width))
        yield fill * (end - edge), style
        edge = end


def _steps(told: Comparison, unicode: bool) -> Iterator[_Line]:
    """A typical optimizer step of the first way and of the balanced one, rank by rank."""
    first = next(iter(told.ways))
    pair = [first, "balanced"]
    yield [
        ("A typical step".ljust(_LABEL), "bold"),
        *((f"{way:{_STEP_BAR + 4}}", "bold") for way in pair),
    ]
    widest = heaviest_step(told)
    for rank in shown_ranks(told, _RANKS):
        parts: list[tuple[str, str]] = []
        for way in pair:
            parts += [*_rank_bar(told.ways[way], rank, widest, unicode), ("    ", "")]
        yield _row(f"rank {rank}", *parts)
    if told.world_size > _RANKS:
        yield _row("", (f"{_RANKS} of {told.world_size} ranks", FAINT))


def _rank_bar(audit: Audit, rank: int, widest: int, unicode: bool) -> Iterator[tuple[str, str]]:
    picture = audit.picture
    loads = [t + p for t, p in zip(picture.tokens, picture.padding, strict=True)]
    scale = widest or 1
    shares = (
        picture.tokens[rank] / scale,
        picture.padding[rank] / scale,
        (max(loads) - loads[rank]) / scale,
    )
    filled = 0
    for text, style in _bar(shares, _STEP_BAR, unicode):
        filled += len(text)
        yield text, style
    yield " " * (_STEP_BAR - filled), ""


def _order(told: Comparison) -> Iterator[_Line]:
    yield [("Whether shuffling survives", "bold")]
    for way, audit in told.ways.items():
        yield _row(way, about_order(audit), (f"  ({ABOUT[way]})", FAINT))


def _problems(told: Comparison) -> Iterator[_Line]:
    for way, audit in told.ways.items():
        for problem in audit.problems:
            style = "bold red" if way == "yours" else "yellow"
            yield [(f"{way}: ", style), (problem, "")]


def _wrapped(text: str) -> Iterator[_Line]:
    line = ""
    for word in text.split():
        if line and len(line) + len(word) > 95:
            yield [(line, FAINT)]
            line = ""
        line += f"{' ' if line else ''}{word}"
    yield [(line, FAINT)]
