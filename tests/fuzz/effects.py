"""What Python does to the world while a target runs, from its own audit events."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import dsguard

_STARTS = {
    "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "os.system",
    "pty.spawn", "subprocess.Popen", "ctypes.dlopen", "pickle.find_class", "webbrowser.open",
    "socket.connect", "socket.getaddrinfo", "socket.bind", "urllib.Request",
}  # fmt: skip
_CHANGES = {
    "os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir",
    "os.symlink", "os.truncate", "os.utime", "shutil.copyfile", "shutil.move", "shutil.rmtree",
}  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_DSGUARD = str(Path(dsguard.__file__).parent)
_OWN = tuple(entry for entry in sys.path if entry)
"""Where code and data of dsguard and its libraries are, which may be read and run at any time."""


class EffectError(AssertionError):
    """Something was started or changed, or a file was opened that nobody named."""


class _Watch:
    """The one hook of this process: audit hooks cannot be taken off again."""

    def __init__(self) -> None:
        self.readable: tuple[Path, ...] | None = None
        self.text = ""
        self.seen: list[str] = []
        self.asleep = False
        sys.addaudithook(self.see)

    def see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.readable is None or self.asleep:
            return
        if event in _STARTS or event in _CHANGES:
            self._refuse(f"{event}{arguments!r}")
        if event == "exec":
            self._executed(arguments[0], sys._getframe(1).f_code.co_filename)
        if event == "open":
            self._opened(*arguments)

    def _executed(self, code: Any, by: str) -> None:
        """Libraries make classes and read annotations by exec; dsguard itself has no use for it."""
        name = getattr(code, "co_filename", "")
        if by.startswith(_DSGUARD) or not (_own(name) or name == "<string>"):
            self._refuse(f"{by} executed {code!r}")

    def _opened(self, file: Any, mode: Any, flags: Any) -> None:
        if isinstance(file, int):
            return
        name = os.fsdecode(file)
        if isinstance(flags, int) and flags & _WRITING:
            self._refuse(f"{name} was opened for writing")
        path = Path(os.path.abspath(name))  # noqa: PTH100 - as it was named, links not followed
        if path.exists() and not (path.is_file() or path.is_dir()):
            self._refuse(f"{name}, which may have no end, was opened")
        assert self.readable is not None
        if _own(name) or any(path.is_relative_to(part) for part in self.readable):
            return
        if not self.text or path.name not in self.text:
            self._refuse(f"{name} was opened")
        self.readable = (*self.readable, path.parent)  # for the modules beside a script

    def _refuse(self, what: str) -> NoReturn:
        self.seen.append(what)
        raise EffectError(what)


def _own(name: str) -> bool:
    return name.startswith((*_OWN, "<frozen"))


_watch = _Watch()


@contextmanager
def only_reading(*folders: Path, naming: bytes = b"") -> Iterator[None]:
    """Nothing is started or changed in here, and only files below these folders are opened.

    Files elsewhere may be read where ``naming`` is a text that names them, as a
    launch may name any script: their last part stands in it, quotes and escapes aside.

    Raises:
        EffectError: from where it happens, and at the end in case somebody has caught it.
    """
    _watch.readable, _watch.seen = tuple(folder.absolute() for folder in folders), []
    _watch.text = re.sub(r"\\\n|[\"'\\]", "", os.fsdecode(naming))
    # A module that is imported on its first use would be kept as bytecode beside its source.
    keeps, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = keeps
        _watch.readable = None
    if _watch.seen:
        raise EffectError("; ".join(_watch.seen))


@contextmanager
def warming_up() -> Iterator[None]:
    """What is imported on its first use may be imported in here: classes are made by exec."""
    _watch.asleep = True
    try:
        yield
    finally:
        _watch.asleep = False
