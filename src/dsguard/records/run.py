"""A recorded run: the file of rank 0, and the files of the other ranks beside it."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path

from dsguard.records.columns import UNKNOWN, Columns
from dsguard.records.reading import Session, read_sessions

_AT_ONCE = 3600.0
"""Seconds between the headers of one start: ranks attach together, clocks may be off."""

_SHOWN = 8
"""Ranks that a note names."""


@dataclass(frozen=True)
class Stretch:
    """One session of the run: what was written between two starts of the training.

    ``ranks`` holds the session of every rank that has one, rank 0 among them. ``at`` is the
    index of its first step in the columns of the run.
    """

    ranks: dict[int, Session]
    at: int

    @property
    def first(self) -> Session:
        """What the named file says: rank 0, where it is there."""
        return next(iter(self.ranks.values()))


@dataclass(frozen=True)
class RecordedRun:
    """All stretches one after the other, as columns over the optimizer steps of the run.

    ``position`` is the number of each step; where a stretch counts from 1 again, it goes on
    from the stretch before. ``samples`` are those of all ranks. ``tokens`` are by rank.
    """

    path: Path
    stretches: Sequence[Stretch]
    position: array[int]
    columns: Columns
    samples: array[float]
    samples_by_rank: bool
    """Whether samples were added up over the ranks, not taken from one for all."""
    tokens: dict[int, array[float]]
    notes: Sequence[str]


def read_run(path: Path) -> RecordedRun:
    """Read the record of a run.

    Raises:
        RecordError: one of its files cannot be read, or a line of it is no line of a record.
    """
    named = read_sessions(path)
    others = {rank: read_sessions(file) for rank, file in siblings(path).items()}
    by_stretch: list[dict[int, Session]] = [{s.header.rank: s} for s in named]
    by_start = sorted(by_stretch, key=_start)
    for rank, sessions in sorted(others.items()):
        for session in sessions:
            nearest = _nearest(by_start, session)
            if rank not in nearest and _belongs(nearest, session):
                nearest[rank] = session
    stretches: list[Stretch] = []
    at = 0
    for ranks in by_stretch:
        stretches.append(Stretch(ranks, at))
        at += len(stretches[-1].first.columns)
    columns = _joined(stretches)
    samples, by_rank = _samples(stretches)
    return RecordedRun(
        path=path,
        stretches=stretches,
        position=_positions(columns.step),
        columns=columns,
        samples=samples,
        samples_by_rank=by_rank,
        tokens=_tokens(stretches),
        notes=tuple(_notes(stretches)),
    )


def siblings(path: Path) -> dict[int, Path]:
    """The files of the other ranks by rank: ``run.rank1.jsonl`` beside ``run.jsonl``."""
    found: dict[int, Path] = {}
    prefix, suffix = f"{path.stem}.rank", path.suffix
    for file in path.parent.iterdir() if path.parent.is_dir() else ():
        rank = file.name.removeprefix(prefix).removesuffix(suffix)
        if file.name == f"{prefix}{rank}{suffix}" and rank.isascii() and rank.isdigit():
            found[int(rank)] = file
    return found


def _nearest(by_start: Sequence[dict[int, Session]], session: Session) -> dict[int, Session]:
    """The stretch that starts nearest to a session: of those that start together the first."""
    after = bisect_left(by_start, session.started, key=_start)
    around = list(by_start[after : after + 1])
    if after:
        before = _start(by_start[after - 1])
        around.insert(0, by_start[bisect_left(by_start, before, key=_start)])
    return min(around, key=lambda ranks: _seconds_apart(ranks, session))


def _start(ranks: dict[int, Session]) -> datetime:
    return next(iter(ranks.values())).started


def _seconds_apart(ranks: dict[int, Session], session: Session) -> float:
    return abs((_start(ranks) - session.started).total_seconds())


def _belongs(ranks: dict[int, Session], session: Session) -> bool:
    """Whether a rank's session is of the same start: its file may be left of an earlier run."""
    first = next(iter(ranks.values())).header
    alike = session.header.world_size == first.world_size
    return alike and _seconds_apart(ranks, session) < _AT_ONCE


def _joined(stretches: Sequence[Stretch]) -> Columns:
    joined = Columns()
    for stretch in stretches:
        part, before = stretch.first.columns, len(joined)
        for name, column in vars(part).items():
            if isinstance(column, array):
                getattr(joined, name).extend(column)
        joined.skipped += [before + index for index in part.skipped]
        joined.not_finite += [before + index for index in part.not_finite]
    return joined


def _positions(steps: array[int]) -> array[int]:
    positions = array("q")
    shift, last = 0, 0
    for step in steps:
        if step + shift <= last:
            shift = last + 1 - step
        last = step + shift
        positions.append(last)
    return positions


def _of_rank(stretch: Stretch, rank: int, name: str) -> Sequence[float]:
    """A column of another rank, at the steps of the first one."""
    steps = stretch.first.columns.step
    session = stretch.ranks.get(rank)
    if session is None:
        return array("d", [UNKNOWN]) * len(steps)
    column: array[float] = getattr(session.columns, name)
    if session.columns.step == steps:
        return column
    there = dict(zip(session.columns.step, column, strict=True))
    return array("d", (there.get(step, UNKNOWN) for step in steps))


def _samples(stretches: Sequence[Stretch]) -> tuple[array[float], bool]:
    samples = array("d")
    added = True
    for stretch in stretches:
        header = stretch.first.header
        if header.data_parallel_size == header.world_size == len(stretch.ranks):
            columns = [_of_rank(stretch, rank, "samples") for rank in stretch.ranks]
            # The last rank may have been killed a step earlier than the first.
            samples.extend(sum(values) for values in zip(*columns, strict=True))
        else:
            added = False
            size = header.data_parallel_size
            samples.extend(value * size for value in stretch.first.columns.samples)
    return samples, added


def _tokens(stretches: Sequence[Stretch]) -> dict[int, array[float]]:
    tokens: dict[int, array[float]] = {}
    for rank in sorted({rank for stretch in stretches for rank in stretch.ranks}):
        column = array("d")
        for stretch in stretches:
            column.extend(_of_rank(stretch, rank, "tokens"))
        if not all(math.isnan(value) for value in column):
            tokens[rank] = column
    return tokens


def _notes(stretches: Sequence[Stretch]) -> list[str]:
    notes: list[str] = []
    several = len(stretches) > 1
    for number, stretch in enumerate(stretches, 1):
        which = f"start {number}: " if several else ""
        world = range(stretch.first.header.world_size)
        if len(world) > len(stretch.ranks):
            missing = islice((rank for rank in world if rank not in stretch.ranks), _SHOWN + 1)
            notes.append(
                f"{which}no record of {_ranks([*missing], len(world) - len(stretch.ranks))}"
            )
        torn = sorted(rank for rank, session in stretch.ranks.items() if session.torn)
        if torn:
            notes.append(f"{which}the last line of {_ranks(torn)} is cut off and left out")
        silent = sorted(r for r, s in stretch.ranks.items() if s.summary is None)
        if silent:
            notes.append(f"{which}no summary of {_ranks(silent)}: killed, or still running")
        lengths = {len(session.columns) for session in stretch.ranks.values()}
        if len(lengths) > 1:
            notes.append(
                f"{which}the ranks have written between {min(lengths)} and {max(lengths)} steps"
            )
    return notes


def _ranks(ranks: Sequence[int], count: int | None = None) -> str:
    shown = ", ".join(map(str, ranks[:_SHOWN])) + (" …" if len(ranks) > _SHOWN else "")
    return f"rank {shown}" if len(ranks) == 1 else f"{count or len(ranks)} ranks ({shown})"
