"""Writing a file whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO

_OPEN = re.compile(r"(?:/proc/(?P<process>\d+)(?:/task/\d+)?|/dev)/fd/\d{1,9}")
_MOST_LINKS = 40
"""Linux follows so many links of one path."""

_NO_OTHER = frozenset((errno.EACCES, errno.EBUSY, errno.EPERM, errno.EROFS, errno.EXDEV))
"""Why no other file can take the place of one: it is mounted there by itself, as into a container,
its folder is read-only, or both belong to somebody else, as in ``/tmp``."""

_LONGEST_START = 40
"""So much of a file's name begins the name of its temporary file: names end at 255 bytes."""


class WriteError(Exception):
    """A file is left as it was.

    ``subject`` is the path as the user knows it, ``message`` a clause without a full stop,
    ``help`` a way out (may be empty).
    """

    def __init__(self, subject: str, message: str, help: str = "") -> None:
        super().__init__(f"{subject}: {message}")
        self.subject = subject
        self.message = message
        self.help = help


def rewrite(path: Path, name: str, old: str, new: str) -> None:
    """Put another text in place of the one that was read, keeping the file's mode and owner.

    The text goes to a temporary file in the same folder, which then takes the place of the old
    one: whoever reads the file sees the old text or the new one, never a part. A file that no
    other can stand in for, because this user may not give one its owner, group or mode, or may
    not rename in that folder, is written to itself, and gets its old text back where that fails.

    Args:
        path: the file.
        name: the path as the user knows it.
        old: the text that was read from the file.
        new: the text that goes there.

    Raises:
        WriteError: the file is read-only, a link, has changed since it was read, or cannot be
            written; it is left alone.
    """
    try:
        if path.is_symlink():
            target = path.readlink()
            raise WriteError(name, "is a symbolic link and is not replaced", f"name {target}")
        state = path.stat()
        if state.st_nlink > 1:
            raise WriteError(
                name,
                f"has {state.st_nlink} names (hard links), of which only this one would change",
                "edit it by hand, or copy it over itself first",
            )
        if not state.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(
            path, os.W_OK
        ):
            raise WriteError(name, "is read-only", "make it writable, or look at --diff")
        if path.read_bytes() != old.encode("utf-8"):
            raise WriteError(name, "has changed since it was read", "run dsguard again")
        _put(path, new, state)
    except OSError as error:
        raise WriteError(name, f"cannot be written: {error.strerror or error}") from None


def write_whole(path: Path, text: str) -> None:
    """Write a file of dsguard's own, new or in place of an older one, whose mode it keeps.

    A symbolic link is followed; a pipe, a device or an open stream (``/dev/stdout``) is written to.

    Raises:
        OSError: it cannot be written; an older file is left alone and nothing is left behind.
    """
    place = _through_links(path)
    if _is_open_here(place):
        # What is open at that number may be in the middle of a file, or a socket.
        with os.fdopen(os.dup(int(place.name)), "wb") as stream:
            stream.write(text.encode("utf-8"))
        return
    target = Path(os.path.realpath(path))
    # Unlike Path.is_symlink, this takes a folder out of reach.
    if os.path.islink(target):  # noqa: PTH114
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if not target.exists():
        _put(target, text, None)
    elif target.is_file():
        with target.open("ab"):  # replacing would not ask whether the file may be written
            state = target.stat()
        _put(target, text, state)
    else:
        target.write_text(text, encoding="utf-8", newline="\n")


def _is_open_here(path: Path) -> bool:
    """Whether a path is the number of something that this process has open."""
    found = _OPEN.fullmatch(str(path))
    return found is not None and found["process"] in (None, str(os.getpid()))


def _through_links(path: Path) -> Path:
    """Where links lead, but not through the name of an open file to the file behind it."""
    for _ in range(_MOST_LINKS):
        path = Path(os.path.realpath(path.parent), path.name)
        if _is_open_here(path) or not os.path.islink(path):  # noqa: PTH114
            break
        path = path.parent / path.readlink()
    return path


def _put(path: Path, text: str, state: os.stat_result | None) -> None:
    data = text.encode("utf-8")
    try:
        temporary = _temporary(path, data, state)
    except OSError as error:  # nothing new may be made in that folder
        if state is None or error.errno not in _NO_OTHER:
            raise
        temporary = None
    if temporary is None:
        _write_over(path, data)
        return
    try:
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        if state is None or error.errno not in _NO_OTHER:
            raise
        _write_over(path, data)


def _temporary(path: Path, data: bytes, state: os.stat_result | None) -> Path | None:
    """A file beside another one that can take its place; None where this user can make none.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    import tempfile  # it takes random numbers with it, and most runs write nothing

    start = f".{path.name[:_LONGEST_START]}."
    handle, name = tempfile.mkstemp(prefix=start, dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if state is None:
            temporary.chmod(0o666 & ~_umask())
        elif not _made_alike(temporary, state):
            temporary.unlink()
            return None
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    return temporary


def _made_alike(file: Path, state: os.stat_result) -> bool:
    """Give a file the owner, group and mode of another; False where this user may not."""
    if hasattr(os, "chown") and _owners(file.stat()) != _owners(state):
        with suppress(OSError):
            os.chown(file, *_owners(state))
    file.chmod(stat.S_IMODE(state.st_mode))
    now = file.stat()
    return (_owners(now), now.st_mode) == (_owners(state), state.st_mode)


def _owners(state: os.stat_result) -> tuple[int, int]:
    return state.st_uid, state.st_gid


def _write_over(path: Path, data: bytes) -> None:
    """Write to the file itself; what was there is there again where that fails.

    Raises:
        OSError: it fails.
    """
    with path.open("r+b") as file:
        old = file.read()
        try:
            _fill(file, data)
        except BaseException:
            with suppress(OSError):  # it lies on the disk already, and needs no new room
                _fill(file, old)
            raise


def _fill(file: BinaryIO, data: bytes) -> None:
    handle = file.fileno()
    os.lseek(handle, 0, os.SEEK_SET)
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]
    os.ftruncate(handle, len(data))
    os.fsync(handle)


def _umask() -> int:
    """The mask for the mode of new files, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
