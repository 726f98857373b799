"""One record per optimizer step, for whoever wants to look at the run afterwards."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from dsguard.runtime.windows import Window, Windows

Record: TypeAlias = "str | os.PathLike[str] | Callable[[dict[str, Any]], None] | None"
"""A file of JSON lines, or a function that takes each record."""


class Recorder:
    """Writes or hands over the records of one rank.

    A record holds ``step`` (optimizer steps so far, this one included), ``micro_batches`` and
    ``samples`` of its window on this rank (None where unknown), ``expected`` accumulation,
    ``applied`` (False: skipped because of an overflow) and ``rank``.

    A file is opened for appending at the first record. Ranks other than 0 write beside it, with
    their number before the suffix: ``run.jsonl``, ``run.rank1.jsonl``.
    """

    def __init__(self, record: Record, rank: int) -> None:
        self._rank = rank
        self._function = record if callable(record) else None
        self._path = None if record is None or callable(record) else _of_rank(Path(record), rank)
        self._file: TextIO | None = None

    @property
    def wanted(self) -> bool:
        """Whether anybody wants records."""
        return self._function is not None or self._path is not None

    def write(self, window: Window, windows: Windows) -> None:
        """Take one closed window down.

        Raises:
            Exception: the file cannot be written, or the function raises.
        """
        record = {
            "step": windows.optimizer_steps,
            "micro_batches": window.micro_batches,
            "samples": window.samples,
            "expected": window.expected,
            "applied": window.applied,
            "rank": self._rank,
        }
        if self._function is not None:
            self._function(record)
        elif self._path is not None:
            if self._file is None:
                # One line at a time reaches the disk: a killed run keeps what it has told.
                self._file = self._path.open("a", encoding="utf-8", buffering=1)
            self._file.write(json.dumps(record) + "\n")

    def give_up(self) -> None:
        """Want no more records."""
        with suppress(OSError):
            self.close()
        self._function = self._path = None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _of_rank(path: Path, rank: int) -> Path:
    return path if rank == 0 else path.with_suffix(f".rank{rank}{path.suffix}")
