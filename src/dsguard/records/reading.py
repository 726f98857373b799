"""From a file of JSON lines to sessions: what one guard wrote from its header to its end."""

from __future__ import annotations

import json
import stat
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from dsguard.model.record import (
    RECORD_VERSION,
    FoundLine,
    HeaderLine,
    Line,
    StepLine,
    SummaryLine,
)
from dsguard.reading.load import open_without_waiting
from dsguard.records.columns import Columns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINES: TypeAdapter[Line] = TypeAdapter(
    Annotated[HeaderLine | StepLine | SummaryLine, Field(discriminator="kind")]
)
"""Any line of a record."""


class RecordError(Exception):
    """A record cannot be read.

    ``line`` counts from 1 and is None where it is about the whole file; ``help`` is a way out.
    """

    def __init__(self, path: Path, message: str, line: int | None = None, help: str = "") -> None:
        place = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{place}: {message}")
        self.line = line
        self.help = help


@dataclass
class Session:
    """What one guard wrote on one rank.

    ``findings`` are the first ones of each kind, each with the index of its step in
    ``columns``; one made after the last step has the number of steps as its index. ``summary``
    is None where the run was killed or still runs; ``torn`` says that its last line is cut off.
    """

    header: HeaderLine
    started: datetime
    columns: Columns = field(default_factory=Columns)
    findings: list[tuple[int, FoundLine]] = field(default_factory=list)
    summary: SummaryLine | None = None
    torn: bool = False


def read_sessions(path: Path) -> list[Session]:
    """The sessions of one rank's file, at least one.

    A line that is cut off is tolerated where a session may have been killed: at the end of the
    file, and before the header of a continuation.

    Raises:
        RecordError: it cannot be read, or a line is no line of a record.
    """
    sessions: list[Session] = []
    cut: RecordError | None = None
    try:
        for number, text in _lines(path):
            try:
                line = _parsed(path, number, text)
            except RecordError as error:
                if cut is not None:
                    raise cut from None
                if not sessions:
                    raise
                cut = error
                continue
            if any(isinstance(value, int) and abs(value) > _MOST for value in vars(line).values()):
                raise RecordError(path, "a number is too large to be a count", number)
            if isinstance(line, HeaderLine):
                if cut is not None:
                    sessions[-1].torn, cut = True, None
                sessions.append(Session(line, _moment(line, path, number)))
                continue
            if cut is not None:
                raise cut
            if not sessions:
                raise RecordError(path, "a record begins with its header", number, _WHAT_IT_READS)
            _take(sessions[-1], line, path, number)
    except OSError as error:
        raise RecordError(path, f"cannot be read: {error.strerror or error}") from None
    except ValueError:  # a NUL character in the path
        raise RecordError(path, "is no possible path") from None
    if not sessions:
        raise RecordError(path, "is empty", help=_WHAT_IT_READS)
    if cut is not None:
        sessions[-1].torn = True
    return sessions


_LONGEST = 1 << 20
"""Bytes of a line; the guard writes some hundred, and a few thousand where it has found much."""

_MOST = 1 << 40
"""A larger count is none: sums and products of those below stay far within 64 bits and floats."""

_WHAT_IT_READS = 'guard(engine, record="run.jsonl") writes what this command reads'


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # opening a folder says what it is
        raise RecordError(path, "is not a regular file")
    with open_without_waiting(path) as file:
        for number in count(1):
            text = file.readline(_LONGEST + 1)
            if len(text) > _LONGEST:
                raise RecordError(path, f"is longer than {_LONGEST} bytes", number, _WHAT_IT_READS)
            if not text:
                return
            if text.strip():
                yield number, text


def _take(session: Session, line: Line, path: Path, number: int) -> None:
    if session.summary is not None:
        help = "does another process write to the same file?"
        raise RecordError(path, "the record goes on after its summary", number, help)
    if isinstance(line, StepLine):
        index = len(session.columns)
        session.columns.add(line)
    else:
        assert isinstance(line, SummaryLine)
        index = len(session.columns)
        session.summary = line
    session.findings += [(index, found) for found in line.findings]


def _parsed(path: Path, number: int, text: bytes) -> Line:
    try:
        return LINES.validate_json(text)
    except ValidationError as error:
        message, help = _explained(text, error)
        raise RecordError(path, message, number, help) from None


def _moment(header: HeaderLine, path: Path, number: int) -> datetime:
    try:
        started = datetime.fromisoformat(header.started_at)
    except ValueError:
        started = None
    if started is None or started.tzinfo is None:
        raise RecordError(path, f"started_at: {header.started_at!r} is no time with a zone", number)
    return started


def _explained(text: bytes, error: ValidationError) -> tuple[str, str]:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return "is no JSON, so no line of a record", _WHAT_IT_READS
    if not isinstance(value, dict) or "kind" not in value:
        return "is no line of a record", _WHAT_IT_READS
    version = value.get("version")
    if value["kind"] == "header" and version != RECORD_VERSION:
        return (
            f"is a record of version {version}; this dsguard reads version {RECORD_VERSION}",
            "read it with the release of dsguard that wrote it, or a newer one",
        )
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"][1:])
    return f"{place}: {first['msg']}" if place else first["msg"], ""
