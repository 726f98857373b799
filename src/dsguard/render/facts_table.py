"""What will run and who said so, as a table to be read at a glance."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, NamedTuple

from rich import box
from rich.cells import cell_len
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from dsguard.model.fact import (
    Candidate,
    Fact,
    FactName,
    Facts,
    Known,
    Origin,
    Unknown,
)
from dsguard.render.characters import sentence
from dsguard.render.line import Line
from dsguard.render.paint import FAINT, GOOD, console, paint, written
from dsguard.render.values import show_value
from dsguard.render.wording import check_name, counted, place, said_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dsguard.model.report import Check

_GROUP_STARTS = ("world_size", "train_batch_size", "gradient_clipping", "optimizer")
"""A blank row goes before these: versions and launch, sizes, batch, precision, optimizer."""

_PROSE = 48
"""Sources are wrapped at this width where there is room for a column of what was ignored."""

_NARROWEST = 30
_UNLIMITED = 1_000_000
_GAP = 3
"""Cells between two columns of the table."""

_GLUE = "\xa0"
"""A space that no line is broken at. Text made safe to show never holds one."""

_BAD = "bold red"
_OPEN = "yellow"

_BOX = {True: box.SIMPLE, False: box.Box(str(box.SIMPLE).replace("─", "-"), ascii=True)}


def render_facts(
    check: Check, *, color: bool, unicode: bool, columns: int | None = None, named: bool = False
) -> str:
    """The facts of one check: what one step trains on, then every fact with its source.

    Where the table is wider than ``columns`` the facts are listed one below the other
    instead. ``named`` puts the config and the launch command above, for when several checks
    are shown.
    """

    def safe(text: str) -> str:
        return sentence(text, unicode=unicode)

    lines = [Line(safe(check_name(check)), "bold")] if named else []
    lines += [Line(safe(text), style) for text, style in _headlines(check.facts)]
    rows = [_row(name, fact, safe) for name, fact in check.facts.items()]
    return paint([*lines, Line()], color=color) + _layout(rows, color, unicode, columns)


class _Row(NamedTuple):
    """One fact. Each entry of ``said_by`` and ``ignored`` starts a line."""

    fact: str
    value: str
    said_by: tuple[str, ...]
    ignored: tuple[str, ...]
    style: str


def _row(name: str, fact: Fact, safe: Callable[[str], str]) -> _Row:
    def source(origin: Origin) -> str:
        words = safe(said_by(origin))
        if origin.location is None:
            return words
        where = safe(place(origin.location))
        return words.replace(where, where.replace(" ", _GLUE))

    def given(candidates: tuple[Candidate, ...]) -> tuple[str, ...]:
        return tuple(
            f"{safe(show_value(one.value))} from {source(one.origin)}" for one in candidates
        )

    if isinstance(fact, Known):
        value = safe(show_value(fact.value))
        return _Row(name, value, (source(fact.origin),), given(fact.ignored), GOOD)
    if isinstance(fact, Unknown):
        return _Row(name, "unknown", (safe(fact.reason),), given(fact.ignored), _OPEN)
    return _Row(name, "conflict", given(fact.candidates), (), _BAD)


def _headlines(facts: Facts) -> Iterator[tuple[str, str]]:
    """The essential sentence, and what contradicts it."""
    samples = facts["samples_per_step"]
    if isinstance(samples, Unknown):
        yield f"What one optimizer step trains on is unknown: {samples.reason}", _OPEN
    step = _count(facts, "samples_per_step")
    if step is None:
        return
    sentence = f"One optimizer step trains on {counted(step, 'sample')}"
    accumulation = _count(facts, "gradient_accumulation_steps")
    ranks = _count(facts, "data_parallel_size")
    if accumulation and ranks and step % (accumulation * ranks) == 0:
        kind = "rank" if facts.value("world_size") == ranks else "data-parallel rank"
        sentence += (
            f": {step // (accumulation * ranks)} per loader batch"
            f" × {counted(accumulation, 'accumulation step')} × {counted(ranks, kind)}"
        )
    yield sentence, "bold"
    batch = _count(facts, "train_batch_size")
    if batch is not None and batch != step:
        amount = f"{abs(batch - step)} {'fewer' if step < batch else 'more'}"
        yield f"train_batch_size says {batch}: every step trains on {amount}", _BAD


def _count(facts: Facts, name: FactName) -> int | None:
    value = facts.value(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _layout(rows: list[_Row], color: bool, unicode: bool, columns: int | None) -> str:
    """The widest of three layouts that fits: four columns, three, or a list."""
    out = console(color=color, width=_UNLIMITED)

    def fits(table: Table) -> bool:
        return columns is None or Measurement.get(out, out.options, table).maximum <= columns

    table = _table(rows, unicode, _PROSE, ignored_apart=True)
    if columns is not None and not fits(table):
        taken = sum(max(map(cell_len, cells)) for cells in list(zip(*rows, strict=True))[:2])
        room = columns - taken - 2 * _GAP
        table = _table(rows, unicode, max(room, _NARROWEST), ignored_apart=False)
        if not fits(table):
            return paint(_listed(rows, max(columns - 4, _NARROWEST)), color=color)
    out.print(table)
    return "".join(line.rstrip() + "\n" for line in written(out).rstrip().splitlines())


def _table(rows: list[_Row], unicode: bool, prose: int, *, ignored_apart: bool) -> Table:
    table = Table(box=_BOX[unicode], pad_edge=False, show_edge=False)
    for header in ("fact", "value", "said by", "ignored")[: 4 if ignored_apart else 3]:
        table.add_column(header, no_wrap=True)
    for row in rows:
        if row.fact in _GROUP_STARTS:
            table.add_section()
        sources = Text("\n".join(_wrapped(row.said_by, prose)))
        ignored = row.ignored if ignored_apart else _marked(row.ignored)
        losers = Text("\n".join(_wrapped(ignored, prose)), FAINT)
        cells = [Text(row.fact), Text(row.value, row.style)]
        if ignored_apart:
            table.add_row(*cells, sources, losers)
        else:
            table.add_row(*cells, Text("\n").join(filter(None, (sources, losers))))
    return table


def _listed(rows: list[_Row], width: int) -> Iterator[Line]:
    for row in rows:
        if row.fact in _GROUP_STARTS:
            yield Line()
        yield Line.assemble(f"{row.fact}  ", (row.value, row.style))
        yield from (Line(f"    {line}") for line in _wrapped(row.said_by, width))
        yield from (Line(f"    {line}", FAINT) for line in _wrapped(_marked(row.ignored), width))


def _marked(ignored: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"ignored: {entry}" for entry in ignored)


def _wrapped(entries: tuple[str, ...], width: int) -> list[str]:
    """Entries as lines. A place stays whole even where it is longer than a line."""
    return [
        line.replace(_GLUE, " ")
        for entry in entries
        for line in textwrap.wrap(
            entry,
            width,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]
