"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


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
    one: whoever reads the file sees the old text or the new one, never a part.

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

    A symbolic link is followed; a pipe or device is written to.

    Raises:
        OSError: it cannot be written; an older file is left alone and nothing is left behind.
    """
    target = Path(os.path.realpath(path))
    if not target.exists():
        _put(target, text, None)
    elif target.is_file():
        with target.open("ab"):  # replacing would not ask whether the file may be written
            state = target.stat()
        _put(target, text, state)
    else:
        target.write_text(text, encoding="utf-8", newline="\n")


def _put(path: Path, text: str, state: os.stat_result | None) -> None:
    import tempfile  # it takes random numbers with it, and most runs write nothing

    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        if state is None:
            temporary.chmod(0o666 & ~_umask())
        else:
            with suppress(OSError, AttributeError):  # only the owner of all files may do it
                os.chown(temporary, state.st_uid, state.st_gid)
            temporary.chmod(stat.S_IMODE(state.st_mode))
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _umask() -> int:
    """The mask for the mode of new files, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
