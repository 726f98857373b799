"""Scripts and the modules beside them, from disk.

Python decides the encoding of a source file by its byte order mark or a comment (PEP 263);
:func:`tokenize.detect_encoding` is that rule.
"""

from __future__ import annotations

import codecs
import io
import os
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING

from dsguard.model.source import Source
from dsguard.reading.load import start_of_regular

if TYPE_CHECKING:
    from collections.abc import Callable

    from dsguard.script.script import Script

SCRIPT_SUFFIXES = (".py", ".ipynb")
"""Files that are read as training scripts."""

MAX_BYTES = 1024 * 1024
"""Larger files are not read: nobody writes a megabyte of training script by hand."""

_SLOW_OR_NO_TEXT = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape"})


def load_script(path: Path, name: str) -> Script | None:
    """Read a training script or notebook, and the local modules that it uses.

    ``name`` is the path as it is shown to the user.

    Returns:
        None where there is no regular file at ``path``; a script that is ``unreadable`` where
        the file is too large, may not be read, or is no text.
    """
    # Imported where a script is read: a config alone needs none of it.
    from dsguard.script.read import read_script
    from dsguard.script.script import Script

    try:
        source = _load(path, name)
    except _NotReadError as error:
        return Script(Source(name, ""), unreadable=str(error))
    if source is None:
        return None
    if path.suffix == ".ipynb":
        from dsguard.script.notebook import NotANotebookError, read_notebook

        try:
            source = read_notebook(source.text, name)
        except NotANotebookError as error:
            return Script(source, unreadable=str(error))
    return read_script(source, modules_below(path, name))


def names_deepspeed(path: Path) -> bool:
    """Whether the word DeepSpeed stands in a file, however it is spelt: a quick first look.

    False where the file cannot be read. One that is too large to be read says no either.
    """
    try:
        data = _bytes_of(path)
    except _NotReadError:
        return False
    return data is not None and b"deepspeed" in data.lower()


def modules_below(path: Path, name: str) -> Callable[[str], Source | None]:
    """Finds modules as ``import`` would in the folder of a script, and nowhere else.

    The function that is returned gives the source of a dotted module name, or None where no
    readable file of that module stands below the folder. Links that lead out of it do not
    count.
    """
    folder, shown = path.parent, Path(name).parent

    def find(module: str) -> Source | None:
        parts = module.split(".")
        if not all(part.isidentifier() for part in parts):
            return None
        for relative in (
            Path(*parts).with_suffix(".py"),
            Path(*parts, "__init__.py"),
        ):
            # Most modules of a script are libraries. Unlike Path.is_file, this takes any text.
            if not os.path.isfile(folder / relative):  # noqa: PTH113
                continue
            try:
                if not (folder / relative).resolve().is_relative_to(folder.resolve()):
                    continue
                source = _load(folder / relative, str(shown / relative))
            except (_NotReadError, OSError, RuntimeError):
                continue
            if source is not None:
                return source
        return None

    return find


class _NotReadError(Exception):
    """Why there is a file and no text."""


def _load(path: Path, name: str) -> Source | None:
    data = _bytes_of(path)
    return None if data is None else Source(name, _decode(data))


def _bytes_of(path: Path) -> bytes | None:
    """A regular file that is not too large; None where there is none."""
    try:
        data = start_of_regular(path, MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        raise _NotReadError(f"it cannot be read: {error.strerror or error}") from None
    if data is not None and len(data) > MAX_BYTES:
        raise _NotReadError(f"it is larger than {MAX_BYTES // 2**20} MiB")
    return data


def _decode(data: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        if codecs.lookup(encoding).name.replace("-", "_") in _SLOW_OR_NO_TEXT:
            raise _NotReadError(f"its encoding {encoding} is not read")
        return data.decode(encoding)
    except (SyntaxError, LookupError) as error:
        raise _NotReadError(f"its encoding is not known: {error}") from None
    except UnicodeError:
        raise _NotReadError(f"it is not the {encoding} text that it says it is") from None
