"""A comparison of ways of batching as one page of HTML; its charts are SVG and need no script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.render.balance_words import (
    ABOUT,
    COLUMNS,
    about_lengths,
    about_order,
    about_shape,
    figures,
    heaviest_step,
    notes,
    percent,
    shown_ranks,
)
from dsguard.render.html import html_page
from dsguard.render.html.escaping import safe
from dsguard.render.run_wording import amount, number, short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.data.comparison import Comparison
    from dsguard.data.report import Audit

_WIDTH, _HEIGHT = 1000, 120
"""The drawing's own units; a chart is as wide as the page."""

_RANKS = 16
_FILLS = ("useful", "padding", "waiting")


def render_balance_page(name: str, told: Comparison) -> str:
    """The page; its size does not grow with the number of samples."""
    return html_page(
        title=f"{name}: padding and balance",
        lead=f"{about_lengths(told)}; {about_shape(told)}",
        source=name,
        body="\n".join(_body(told)),
    )


def _body(told: Comparison) -> Iterator[str]:
    yield from _cards(told)
    yield from _problems(told)
    yield "<h2>What each way of batching costs</h2>"
    yield from _table(told)
    yield f'<p class="soft">{safe(notes(told))}</p>'
    yield "<h2>What the time of all ranks goes into</h2>"
    yield _legend()
    yield from _time(told)
    yield "<h2>A typical optimizer step, rank by rank</h2>"
    yield from _steps(told)
    yield "<h2>Imbalance over the epoch</h2>"
    for way, audit in told.ways.items():
        yield from _panel(way, _columns(audit.imbalance, _top(told), "series"), _over(audit))
    yield "<h2>Lengths</h2>"
    histogram = told.lengths.histogram
    yield from _panel(
        "samples by length",
        _columns(histogram, max(histogram), "series"),
        f"{number(told.lengths.shortest)} to {number(told.lengths.longest)} tokens, "
        "each class as many times longer than the one before",
    )


def _cards(told: Comparison) -> Iterator[str]:
    shuffled, balanced = told.ways["shuffled"], told.ways["balanced"]
    cards = [
        ("Tokens", short(told.lengths.tokens), amount(told.lengths.samples, "sample")),
        ("Padding, balanced", percent(balanced.padding), f"{percent(shuffled.padding)} shuffled"),
        (
            "Waiting, balanced",
            percent(balanced.waiting_micro_batch),
            f"{percent(shuffled.waiting_micro_batch)} shuffled",
        ),
        (
            "Step imbalance, balanced",
            percent(balanced.step_imbalance.mean),
            f"{percent(shuffled.step_imbalance.mean)} shuffled",
        ),
        ("Time of an epoch", f"{told.relative_time('balanced'):.2f}", "of a shuffled one"),
    ]
    yield '<dl class="cards">'
    for label, value, note in cards:
        yield (
            f'<div class="card"><dt>{safe(label)}</dt>'
            f"<dd>{safe(value)}<small>{safe(note)}</small></dd></div>"
        )
    yield "</dl>"


def _problems(told: Comparison) -> Iterator[str]:
    lines = [
        f"<p>{safe(f'{way}: {problem}')}</p>"
        for way, audit in told.ways.items()
        for problem in audit.problems
    ]
    if lines:
        yield f'<div class="notes" role="note">{"".join(lines)}</div>'


def _table(told: Comparison) -> Iterator[str]:
    head = "".join(f'<th class="n">{safe(column)}</th>' for column in COLUMNS)
    yield f'<div class="panel scroll"><table><thead><tr><th>way</th>{head}'
    yield "<th>shuffling</th></tr></thead><tbody>"
    for way, audit in told.ways.items():
        cells = "".join(f'<td class="n">{safe(figure)}</td>' for figure in figures(told, way))
        yield (
            f"<tr><td>{safe(way)}<br><small>{safe(ABOUT[way])}</small></td>{cells}"
            f"<td>{safe(about_order(audit))}</td></tr>"
        )
    yield "</tbody></table></div>"


def _legend() -> str:
    items = "".join(
        f'<li><svg width="12" height="12" aria-hidden="true">'
        f'<rect class="f-{fill}" width="12" height="12"/></svg>{fill}</li>'
        for fill in _FILLS
    )
    return f'<ul class="legend">{items}</ul>'


def _time(told: Comparison) -> Iterator[str]:
    longest = max(told.relative_time(way) for way in told.ways) or 1.0
    for way, audit in told.ways.items():
        time = told.relative_time(way)
        shares = (audit.shares.useful, audit.shares.padding, audit.shares.waiting)
        words = ", ".join(
            f"{percent(share)} {fill}" for share, fill in zip(shares, _FILLS, strict=True)
        )
        bar = _stacked([share * time / longest for share in shares], 0, 22)
        yield from _panel(way, _drawing(bar, 22, words), words)


def _steps(told: Comparison) -> Iterator[str]:
    ranks = shown_ranks(told, _RANKS)
    widest = heaviest_step(told) or 1
    for way, audit in told.ways.items():
        rows = "".join(
            _stacked(_of_rank(audit, rank, widest), 12 * row, 10) for row, rank in enumerate(ranks)
        )
        loads = _loads(audit)
        words = (
            f"step {audit.picture.step:,}: {number(min(loads))} to {number(max(loads))} tokens "
            f"a rank with padding"
        )
        if len(ranks) < told.world_size:
            words += f"; {len(ranks)} of {told.world_size} ranks"
        yield from _panel(way, _drawing(rows, 12 * len(ranks), words), words)


def _loads(audit: Audit) -> list[int]:
    picture = audit.picture
    return [t + p for t, p in zip(picture.tokens, picture.padding, strict=True)]


def _of_rank(audit: Audit, rank: int, widest: int) -> list[float]:
    loads = _loads(audit)
    picture = audit.picture
    parts = (picture.tokens[rank], picture.padding[rank], max(loads) - loads[rank])
    return [part / widest for part in parts]


def _top(told: Comparison) -> float:
    return max(max(audit.imbalance) for audit in told.ways.values()) or 1.0


def _over(audit: Audit) -> str:
    spread = audit.step_imbalance
    return (
        f"{percent(spread.mean)} mean, {percent(spread.p95)} p95, {percent(spread.maximum)} worst, "
        f"over {amount(audit.optimizer_steps, 'optimizer step')}"
    )


def _panel(title: str, drawing: str, words: str) -> Iterator[str]:
    yield (
        f'<section class="panel chart"><div class="top"><h3>{safe(title)}</h3>'
        f'<span class="read">{safe(words)}</span></div>{drawing}</section>'
    )


def _drawing(inside: str, height: float, words: str) -> str:
    return (
        f'<svg class="drawn" viewBox="0 0 {_WIDTH} {height:g}" preserveAspectRatio="none" '
        f'role="img" aria-label="{safe(words)}">{inside}</svg>'
    )


def _stacked(shares: list[float], top: float, height: float) -> str:
    """Rectangles side by side, one for each of the three fills."""
    parts, left = [], 0.0
    for share, fill in zip(shares, _FILLS, strict=True):
        width = share * _WIDTH
        parts.append(
            f'<rect class="f-{fill}" x="{left:.1f}" y="{top:g}" width="{width:.1f}" '
            f'height="{height:g}"/>'
        )
        left += width
    return "".join(parts)


def _columns(values: tuple[float, ...] | tuple[int, ...], top: float, fill: str) -> str:
    """One column for each value, from the bottom."""
    width = _WIDTH / len(values)
    heights = [_HEIGHT * value / (top or 1) for value in values]
    columns = "".join(
        f'<rect class="f-{fill}" x="{index * width:.1f}" width="{width * 0.86:.1f}" '
        f'y="{_HEIGHT - height:.1f}" height="{height:.1f}"/>'
        for index, height in enumerate(heights)
    )
    words = f"{len(values)} values, highest {number(max(values))}"
    return _drawing(columns, _HEIGHT, words)
