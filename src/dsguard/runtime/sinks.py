"""Where records go: a file, a function, or the experiment tracker that is in use already."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dsguard.runtime.sink import Sink
from dsguard.runtime.trackers import TrackerSink, WriterSink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dsguard.model.record import HeaderLine, Line, StepLine, SummaryLine
    from dsguard.runtime.gauges import Gauges

Record: TypeAlias = (
    "str | os.PathLike[str] | Callable[[dict[str, Any]], None] | Any | Iterable[Any] | None"
)
"""What ``guard(record=…)`` takes; see :func:`sinks_of`."""

MONITOR = "monitor"
"""The word that asks for the tracker in use."""

_LOOK_EVERY = 16
"""Steps from one look at whether the file is still there to the next."""

_encode = json.JSONEncoder(default=vars, allow_nan=False, separators=(",", ":")).encode


def sinks_of(record: Record) -> list[Sink]:
    """Understand what the caller wants the records to go to.

    A path; a function, called with each step's record; ``"monitor"``; an object with TensorBoard's
    ``add_scalar``; or a list of these.

    Raises:
        ValueError: nothing of the kind, or the path of a folder.
    """
    if record is None:
        return []
    several = record if isinstance(record, (list, tuple, set, frozenset)) else (record,)
    return [_sink(one) for one in several]


def _sink(record: Any) -> Sink:
    if record == MONITOR:
        return TrackerSink()
    if isinstance(record, (str, os.PathLike)) and os.fspath(record):
        path = Path(record)
        if _is_folder(path):
            raise ValueError(f"record={str(record)!r} is a folder: name a file in it")
        return FileSink(path)
    if hasattr(record, "add_scalar"):
        return WriterSink(record)
    if callable(record):
        return FunctionSink(record)
    raise ValueError(
        "record is a path, a function, 'monitor', a TensorBoard SummaryWriter or a list of "
        f"these, not {record!r}"
    )


def _is_folder(path: Path) -> bool:
    """Whether it is known to be one; what cannot be looked at, :meth:`FileSink.open` tells."""
    try:
        return path.is_dir()
    except OSError:
        return False


class FileSink(Sink):
    """JSON lines appended to a file; each reaches the system at once, so a killed run keeps it.

    Ranks other than 0 write beside it, with their number before the suffix: ``run.jsonl``,
    ``run.rank1.jsonl``. A folder that is missing is made.
    """

    _in_use: set[Path] = set()

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path
        self._file: Any = None
        self._counts_links = False

    def open(self, header: HeaderLine, gauges: Gauges) -> None:
        """Open the file of this rank and begin it, or continue it, with the header.

        Raises:
            OSError: it cannot be written, or another guard of this process writes it.
        """
        # A script may change the working folder while it trains.
        self._path = self._path.absolute()
        if header.rank:
            self._path = self._path.with_suffix(f".rank{header.rank}{self._path.suffix}")
        if self._path in self._in_use:
            raise FileExistsError("another guard of this process writes to it")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        torn = _ends_torn(self._path)
        self._file = self._path.open("ab", buffering=0)
        self._in_use.add(self._path)
        self._counts_links = os.fstat(self._file.fileno()).st_nlink > 0
        if torn:
            self._write(b"\n")
        self._put(header)

    def take(self, line: StepLine) -> None:
        """Append one line.

        Raises:
            OSError: the disk is full, or the file was removed.
        """
        self._put(line)
        # A removed file takes everything; asking at each step would cost as much as writing.
        looks = self._counts_links and line.step % _LOOK_EVERY == 0
        if looks and os.fstat(self._file.fileno()).st_nlink == 0:
            raise FileNotFoundError("it was removed")

    def close(self, summary: SummaryLine) -> None:
        """Append the summary and close."""
        self._put(summary)
        self.drop()

    def drop(self) -> None:
        """Close the file, if it is open."""
        if self._file is not None:
            self._in_use.discard(self._path)
            self._file.close()
            self._file = None

    def _put(self, line: Line) -> None:
        self._write(_encode(line).encode("ascii") + b"\n")

    def _write(self, data: bytes) -> None:
        written = self._file.write(data)
        while written < len(data):
            # A disk that is nearly full takes a part, and refuses the next.
            data = data[written:]
            written = self._file.write(data)


def _ends_torn(path: Path) -> bool:
    """Whether a run that was killed has left a line without its end."""
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:  # no file yet, or an empty one
        return False


class FunctionSink(Sink):
    """A function of the script that takes each step's record as a dict."""

    def __init__(self, function: Callable[[dict[str, Any]], None]) -> None:
        self.name = f"{getattr(function, '__name__', type(function).__name__)}()"
        self._function = function

    def take(self, line: StepLine) -> None:
        """Hand one record over."""
        findings = [dict(vars(found)) for found in line.findings]
        self._function({**vars(line), "findings": findings})
