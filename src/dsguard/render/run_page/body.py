"""The text of the page: what can be read without the drawings, and the places for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dsguard.records.overview import gravity, off
from dsguard.render.html.escaping import safe
from dsguard.render.run_wording import amount, duration, number, place, seen, setting, short, window

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dsguard.records.report import Overview, Violation

_ROWS = 40
"""Rows of the table of numbers that stands below the charts."""


def body(told: Overview, data: dict[str, Any]) -> str:
    """Everything between the title and the foot of the page."""
    parts = [*_cards(told), *_setting(told), *_notes(told.notes), *_violations(told.violations)]
    parts += [*_charts(data), *_windows(told), *_tokens(told), *_numbers(data)]
    return "\n".join(parts)


def _cards(told: Overview) -> Iterator[str]:
    cards: list[tuple[str, str, str, str]] = [
        ("Optimizer steps", number(told.steps), _steps_note(told), ""),
        (
            "Windows off the boundary",
            number(told.off_steps),
            f"{number(told.micro_batches)} micro-batches in all",
            gravity(told) if told.off_steps else "good",
        ),
        (
            "Skipped steps",
            number(told.skipped_steps),
            f"{100 * told.skipped_steps / told.steps:.2g}% of all" if told.steps else "",
            "warning" if told.skipped_steps else "good",
        ),
        ("Samples", short(told.samples), _samples_note(told), ""),
    ]
    if told.tokens is not None:
        padding = f"{told.padding:.1%} padding" if told.padding is not None else ""
        uneven = f"imbalance {told.imbalance:.1%}" if told.imbalance is not None else ""
        words = ", ".join(filter(None, (padding, uneven)))
        cards.append(("Tokens", short(told.tokens), words, ""))
    if told.grad_norm is not None:
        norm = told.grad_norm
        words = f"highest {number(norm.maximum)} at step {norm.maximum_step:,}"
        if told.not_finite_norms:
            words += f", {told.not_finite_norms:,} not finite"
        cards.append(("Gradient norm, last", number(norm.last), words, ""))
    worst = told.violations[0].severity if told.violations else "good"
    rules = len({violation.rule for violation in told.violations})
    cards.append(("Found by the guard", number(len(told.violations)), amount(rules, "rule"), worst))
    yield '<dl class="cards">'
    for label, value, note, kind in cards:
        small = f"<small>{safe(note)}</small>" if note else ""
        yield (
            f'<div class="card {kind}"><dt>{safe(label)}</dt><dd>{safe(value)}{small}</dd></div>'
        )
    yield "</dl>"


def _steps_note(told: Overview) -> str:
    if told.step_seconds is None:
        return ""
    return f"{duration(told.step_seconds.mean)} each"


def _samples_note(told: Overview) -> str:
    if not told.samples_per_step:
        return "the batches did not show their size"
    usual = told.samples_per_step[0]
    return (
        f"{usual.samples:,} in most steps"
        if len(told.samples_per_step) > 1
        else (f"{usual.samples:,} in each step")
    )


def _setting(told: Overview) -> Iterator[str]:
    yield '<ul class="chips">'
    for name, value in setting(told.starts[-1]):
        yield f"<li>{safe(name)} <strong>{safe(value)}</strong></li>"
    yield "</ul>"


def _notes(notes: Iterable[str]) -> Iterator[str]:
    lines = [f"<p>{safe(note)}</p>" for note in notes]
    if lines:
        yield f'<div class="notes" role="note">{"".join(lines)}</div>'


def _violations(violations: list[Violation]) -> Iterator[str]:
    yield "<h2>What the guard found</h2>"
    if not violations:
        yield '<p class="soft">Nothing.</p>'
        return
    yield '<div class="panel scroll"><table class="violations"><thead><tr><th>Severity</th>'
    yield '<th>Rule</th><th>What</th><th class="n">First step</th></tr></thead><tbody>'
    for one in violations:
        where = place(one)
        about = seen(one) + (f", in {where}" if where else "")
        help = f"<p>{safe(one.help)}</p>" if one.help else ""
        step = "after the last"
        if one.first_step is not None:
            step = f'<button data-step="{one.first_step}">{one.first_step:,}</button>'
        yield (
            f'<tr><td><span class="tag {one.severity}">{one.severity}</span></td>'
            f"<td>{safe(one.rule)}<p><code>{safe(one.code)}</code></p></td>"
            f"<td>{safe(one.message)}<p>{safe(about)}</p>{help}</td>"
            f'<td class="n">{step}</td></tr>'
        )
    yield "</tbody></table></div>"


def _charts(data: dict[str, Any]) -> Iterator[str]:
    yield (
        '<div class="bar" id="charts"><h2>Over the run</h2>'
        '<button id="reset" type="button" disabled>Show all steps</button>'
        '<span class="soft keys">Drag to zoom. In a chart: <kbd>←</kbd> <kbd>→</kbd> move,'
        " <kbd>n</kbd> <kbd>p</kbd> next and previous anomaly, <kbd>+</kbd> <kbd>-</kbd> zoom,"
        " <kbd>0</kbd> all</span></div>"
        '<noscript><p class="soft">The charts need JavaScript; the tables do not.</p></noscript>'
        '<p id="live" class="soft" aria-live="polite" hidden></p>'
    )
    for chart in data["charts"]:
        yield from _chart(chart, data["marks"])


def _chart(chart: dict[str, Any], marks: dict[str, Any]) -> Iterator[str]:
    name = safe(chart["id"])
    legend = "".join(
        f"<li>{_swatch(series['colour'], dashed=series.get('dashed', False))}"
        f"{safe(series['name'])}</li>"
        for series in chart["series"]
    )
    legend += "".join(
        f"<li>{_swatch(marks[mark]['colour'], tick=True)}{safe(marks[mark]['name'])}</li>"
        for mark in chart["marks"]
        if marks[mark]["at"]
    )
    about = f'<p class="about">{safe(chart["about"])}</p>' if chart["about"] else ""
    title = safe(chart["title"])
    yield (
        f'<section class="panel chart" id="chart-{name}"><div class="top"><h3>{title}</h3>'
        f'<ul class="legend">{legend}</ul><span class="read"></span></div>{about}'
        f'<canvas tabindex="0" role="img" aria-label="{title} over optimizer steps"></canvas>'
        "</section>"
    )


def _swatch(colour: str, *, dashed: bool = False, tick: bool = False) -> str:
    """A short stroke of the colour, as the chart draws it."""
    stroke = 'stroke-width="2"' + (' stroke-dasharray="4 3"' if dashed else "")
    line = '<path d="M7 1v8"' if tick else '<path d="M0 5h16"'
    return (
        '<svg width="16" height="10" aria-hidden="true">'
        f'{line} class="c-{safe(colour)}" fill="none" {stroke}/></svg>'
    )


def _windows(told: Overview) -> Iterator[str]:
    if not told.windows:
        return
    yield '<h2>Windows by size</h2><div class="panel scroll"><table><thead><tr>'
    yield '<th class="n">Micro-batches</th><th class="n">Expected</th><th class="n">Steps</th>'
    yield '<th class="n">First at step</th><th>Boundary</th></tr></thead><tbody>'
    for kind in told.windows:
        bad = off(kind.micro_batches, kind.expected)
        mark = f' class="{gravity(told)}"' if bad else ""
        expected = "" if kind.expected is None else f"{kind.expected:,}"
        yield (
            f'<tr{mark}><td class="n">{kind.micro_batches:,}</td><td class="n">{expected}'
            f'</td><td class="n">{kind.steps:,}</td><td class="n">{kind.first_step:,}</td>'
            f"<td>{safe(window(kind))}</td></tr>"
        )
    yield "</tbody></table></div>"
    if told.pending_micro_batches:
        waiting = amount(told.pending_micro_batches, "micro-batch", "micro-batches")
        yield f'<p class="soft">{waiting} after the last step never reached the weights.</p>'


def _tokens(told: Overview) -> Iterator[str]:
    if not told.rank_tokens:
        return
    most = max(one.share for one in told.rank_tokens) or 1
    yield '<h2>Tokens by rank</h2><div class="panel scroll"><table><thead><tr>'
    yield '<th class="n">Rank</th><th class="n">Tokens</th><th class="n">Of the mean</th>'
    yield "<th></th></tr></thead><tbody>"
    for one in told.rank_tokens:
        yield (
            f'<tr><td class="n">{one.rank}</td><td class="n">{one.tokens:,}</td>'
            f'<td class="n">{one.share:.3f}</td><td><svg class="share" width="180" height="10" '
            'aria-hidden="true"><rect class="back" width="180" height="10" rx="3"/>'
            f'<rect width="{180 * one.share / most:.1f}" height="10" rx="3"/></svg></td></tr>'
        )
    yield "</tbody></table></div>"


def _numbers(data: dict[str, Any]) -> Iterator[str]:
    """The charts as a table, for those who cannot see them or run no scripts."""
    count = len(data["from"])
    if not count:
        return
    series = [(chart, one) for chart in data["charts"] for one in chart["series"]]
    yield "<details><summary>The charts as a table</summary>"
    yield '<div class="panel scroll"><table><thead><tr><th class="n">Steps</th>'
    for chart, one in series:
        yield f'<th class="n">{safe(chart["title"])}<br>{safe(one["name"])}</th>'
    yield "</tr></thead><tbody>"
    for index in range(0, count, -(-count // _ROWS)):
        first, last = data["from"][index], data["to"][index]
        steps = f"{first:,}" if first == last else f"{first:,} to {last:,}"
        cells = "".join(f'<td class="n">{_cell(one, index)}</td>' for _, one in series)
        yield f'<tr><td class="n">{steps}</td>{cells}</tr>'
    yield "</tbody></table></div></details>"


def _cell(series: dict[str, Any], index: int) -> str:
    value = series["mean"][index]
    return "" if value is None else safe(number(value))
