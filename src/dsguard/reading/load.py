"""From bytes to a text.

DeepSpeed opens a config in the encoding of the locale, transformers as UTF-8. dsguard reads
UTF-8, with or without a byte order mark, and says so where a file is something else.
"""

from __future__ import annotations

import codecs
import difflib
import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from dsguard.model.source import Source
from dsguard.reading.errors import ReadError

if TYPE_CHECKING:
    from typing import BinaryIO

MAX_BYTES = 16 * 1024 * 1024
"""Larger input is refused: it is no config, and its tree takes some forty times its size."""

CLOSED = ("may not be read by this user", "check its permissions")
"""What is said of a file or folder that is out of reach, and the way out."""

# Of two marks that begin alike the longer one comes first.
_FOREIGN_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def load_path(path: Path, name: str | None = None) -> Source:
    """The text of a config file; ``name`` is shown to the user instead of the path.

    Raises:
        ReadError: there is no such regular file, or it may not or cannot be read as text.
    """
    name = str(path) if name is None else name
    return Source(name, _decode(read_regular(path, name), name))


def read_regular(path: Path, name: str) -> bytes:
    """The bytes of a regular file, for all that is read because something names it.

    Symbolic links are followed. Pipes and devices, which may never end, are refused without
    opening them.

    Raises:
        ReadError: there is no such regular file, it is too large, or it may not or cannot be read.
    """
    try:
        data = start_of_regular(path, MAX_BYTES + 1)
    except FileNotFoundError:
        raise ReadError(name, "does not exist", _did_you_mean(path)) from None
    except PermissionError:
        raise ReadError(name, *CLOSED) from None
    except OSError as error:
        raise ReadError(name, f"cannot be read: {error.strerror or error}") from None
    except ValueError:  # a NUL character or a lone surrogate in the path
        raise ReadError(name, "is no possible path") from None
    if data is not None:
        return _bounded(data, name)
    if path.is_dir():
        raise ReadError(name, "is a directory", "name a config file in it")
    help = "pass a config through a pipe as standard input: -"
    raise ReadError(name, "is not a regular file", help)


def start_of_regular(path: Path, most: int) -> bytes | None:
    """The first ``most`` bytes of a regular file; None where something else is there.

    Raises:
        OSError: there is nothing, it may not be read, or it is a file that has a reader wait.
        ValueError: no path is written so.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        return None
    with open_without_waiting(path) as file:
        # What the type of a buffered file leaves out: None where there is nothing to read yet.
        data: bytes | None = file.read(most)
    if data is None:
        raise BlockingIOError(errno.EAGAIN, "reading it would wait")
    return data


def open_without_waiting(path: Path) -> BinaryIO:
    """Open a file whose reading never waits.

    Some files say that they are regular and are not, such as ``/proc/kmsg``, and between the look
    at a file and its opening a pipe can take its place.

    Raises:
        OSError: it cannot be opened.
    """
    return open(path, "rb", opener=_without_waiting)  # Path.open takes no opener


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def load_bytes(data: bytes, name: str) -> Source:
    """The text of a config that came from no file of that name, such as standard input.

    Raises:
        ReadError: the bytes are too many or no UTF-8 text.
    """
    return Source(name, _decode(_bounded(data, name), name), is_file=False)


def _bounded(data: bytes, name: str) -> bytes:
    if len(data) > MAX_BYTES:
        raise ReadError(name, f"is larger than {MAX_BYTES // 2**20} MiB", "is it a config?")
    return data


def _decode(data: bytes, name: str) -> str:
    for mark, encoding in _FOREIGN_MARKS:
        if data.startswith(mark):
            raise ReadError(name, f"is {encoding} text, not UTF-8", "save it as UTF-8")
    nul = data.find(b"\0")
    if nul != -1:
        raise ReadError(
            name,
            f"holds a NUL byte at {_byte_place(data, nul)}: no UTF-8 text",
            "is it a config? UTF-16 text has to be saved as UTF-8",
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ReadError(
            name,
            f"is not UTF-8: byte 0x{data[error.start]:02x} at {_byte_place(data, error.start)}",
            "save it as UTF-8",
        ) from None


def _byte_place(data: bytes, offset: int) -> str:
    return f"offset {offset} (line {data.count(bytes([10]), 0, offset) + 1})"


def _did_you_mean(path: Path) -> str:
    """The most alike file beside a missing one, or the folder that is missing, too."""
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in entries if entry.is_file()]
    except FileNotFoundError:
        return f"the folder {path.parent} does not exist either"
    except OSError:
        return ""
    # Most names beside a config end in .json: an end in common makes no two names alike.
    stems = [name for name in names if difflib.get_close_matches(path.stem, [Path(name).stem])]
    alike = difflib.get_close_matches(path.name, stems, n=1)
    return f"did you mean {path.parent / alike[0]}?" if alike else ""
