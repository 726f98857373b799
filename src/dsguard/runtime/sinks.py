"""Where records go: a file, a function, or the experiment tracker that is in use already."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

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


class Sink:
    """Takes the lines of one rank. Whatever it raises switches it off."""

    name: str
    """What a note calls it."""

    def open(self, header: HeaderLine, gauges: Gauges) -> None:
        """Get ready; the rank is known now."""

    def take(self, line: StepLine) -> None:
        """Take one optimizer step down."""
        raise NotImplementedError

    def close(self, summary: SummaryLine) -> None:
        """Nothing more comes."""

    def drop(self) -> None:
        """It was switched off."""


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
        if path.is_dir():
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


class FileSink(Sink):
    """JSON lines appended to a file; each reaches the system at once, so a killed run keeps it.

    Ranks other than 0 write beside it, with their number before the suffix: ``run.jsonl``,
    ``run.rank1.jsonl``. A folder that is missing is made.
    """

    _in_use: set[Path] = set()

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        # A script may change the working folder while it trains.
        self._path = path.absolute()
        self._file: Any = None
        self._counts_links = False

    def open(self, header: HeaderLine, gauges: Gauges) -> None:
        """Open the file of this rank and begin it, or continue it, with the header.

        Raises:
            OSError: it cannot be written, or another guard of this process writes it.
        """
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


class WriterSink(Sink):
    """TensorBoard's ``SummaryWriter``, or what has its ``add_scalar``. Rank 0 only."""

    def __init__(self, writer: Any) -> None:
        self.name = type(writer).__name__
        self._writer = writer
        self._speaks = False
        self._values = Values()

    def open(self, header: HeaderLine, gauges: Gauges) -> None:
        """Find out who speaks."""
        self._speaks = header.rank == 0

    def take(self, line: StepLine) -> None:
        """Add one scalar a value, over optimizer steps."""
        if self._speaks:
            for name, value in self._values.of(line).items():
                self._writer.add_scalar(name, value, line.step)


class TrackerSink(Sink):
    """DeepSpeed's monitor where it is enabled, else the active wandb and MLflow run. Rank 0 only.

    Nothing is imported: what the script has not loaded is not in use.
    """

    name = "the experiment tracker in use"

    def __init__(self) -> None:
        self._gauges: Gauges | None = None
        self._speaks = False
        self._values = Values()
        self._axis_for: Any = None
        self._used = False

    def open(self, header: HeaderLine, gauges: Gauges) -> None:
        """Find out who speaks."""
        self._speaks, self._gauges = header.rank == 0, gauges

    def take(self, line: StepLine) -> None:
        """Send the values of one step to what is in use now."""
        if not self._speaks:
            return
        values = self._values.of(line)
        monitor = self._gauges.monitor() if self._gauges is not None else None
        if monitor is not None:
            self._used = True
            # DeepSpeed's own events stand over samples, and wandb takes no step backwards.
            writer, samples = monitor
            writer.write_events([(name, value, samples) for name, value in values.items()])
            return
        self._to_wandb(values, line.step)
        self._to_mlflow(values, line.step)

    def close(self, summary: SummaryLine) -> None:
        """Say that nothing was in use.

        Raises:
            LookupError: the records went nowhere.
        """
        if self._speaks and not self._used and summary.optimizer_steps:
            raise LookupError(
                "neither DeepSpeed's monitor nor a run of wandb or MLflow was ever active"
            )

    def _to_wandb(self, values: dict[str, float], step: int) -> None:
        run = getattr(sys.modules.get("wandb"), "run", None)
        if run is None:
            return
        self._used = True
        if self._axis_for is not run:
            self._axis_for = run
            run.define_metric("dsguard/step")
            run.define_metric("dsguard/*", step_metric="dsguard/step")
        # Without a commit the values join what the script logs next: its own steps are not moved.
        run.log({**values, "dsguard/step": step}, commit=False)

    def _to_mlflow(self, values: dict[str, float], step: int) -> None:
        mlflow = sys.modules.get("mlflow")
        if mlflow is None or mlflow.active_run() is None:
            return
        self._used = True
        # Not synchronous: a server that answers slowly would hold the training up.
        mlflow.log_metrics(values, step=step, synchronous=False)


class Values:
    """What a tracker is told about a step: numbers by name, without those that are unknown."""

    def __init__(self) -> None:
        self._found = 0

    def of(self, line: StepLine) -> dict[str, float]:
        """The numbers of one line; ``dsguard/findings`` counts kinds of findings so far."""
        self._found += len(line.findings)
        values = {
            "micro_batches": line.micro_batches,
            "expected_micro_batches": line.expected,
            "samples": line.samples,
            "tokens": line.tokens,
            "tokens_unpadded": line.tokens_unpadded,
            "skipped": 0 if line.applied else 1,
            "grad_norm": line.grad_norm,
            "learning_rate": line.learning_rate,
            "loss_scale": line.loss_scale,
            "findings": self._found,
        }
        return {f"dsguard/{name}": float(v) for name, v in values.items() if v is not None}
