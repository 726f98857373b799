"""Standard streams that may be closed or full, or that nobody reads any more.

Click ends a program whose reader goes away with 1, which would say that an error was found, and
writes nothing at all to a stream that is closed. So what it and dsguard write goes through these.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

    from typing_extensions import Buffer


class _Answer(io.FileIO):
    """Standard output. A reader that has seen enough is no failure; a full disk is one.

    It fails once: what is left in the buffer then goes nowhere, without another word.
    """

    failed = False

    def write(self, data: Buffer, /) -> int:
        if self.failed:
            return _size(data)
        try:
            written = super().write(data)
            if written is None:  # nobody waits for this stream, and it is full
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        except BrokenPipeError:
            return _size(data)  # the exit code and the files are still owed
        except OSError:
            self.failed = True
            raise
        return written


class _Aside(io.FileIO):
    """Standard error: what cannot be said there changes neither the answer nor the exit code."""

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data) or _size(data)
        except OSError:
            return _size(data)


class _NoAnswer(io.RawIOBase):
    """In place of standard output that is closed, as ``>&-`` does; it fails once."""

    failed = False

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        if not self.failed:
            self.failed = True
            raise OSError(errno.EBADF, "it is closed")
        return _size(data)


class _NothingAside(io.RawIOBase):
    """In place of standard error that is closed, as ``2>&-`` does."""

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        return _size(data)


def guard_streams() -> None:
    """Put guarded streams in place of ``sys.stdout`` and ``sys.stderr``, for the whole process.

    Windows tells of no reader that goes away, and its console takes no bytes: what is open stays.
    """
    sys.stdout = _guarded(sys.stdout, _Answer, _NoAnswer)
    sys.stderr = _guarded(sys.stderr, _Aside, _NothingAside)


def _guarded(stream: TextIO | None, guard: type[io.FileIO], closed: type[io.RawIOBase]) -> TextIO:
    if stream is None:
        return _text(closed(), None)
    if os.name == "nt":
        return stream
    try:
        number = stream.fileno()
    except (OSError, ValueError):  # something in this process has put another one there
        return stream
    stream.flush()
    return _text(guard(number, "wb", closefd=False), stream)


def _text(raw: io.RawIOBase, like: TextIO | None) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=like.encoding if like is not None else "utf-8",
        errors=like.errors if like is not None else "backslashreplace",
        line_buffering=like is not None and bool(like.line_buffering),
        write_through=isinstance(like, io.TextIOWrapper) and like.write_through,
    )


def _size(data: Buffer) -> int:
    return memoryview(data).nbytes
