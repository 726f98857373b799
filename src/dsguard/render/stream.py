"""How a stream wants to be written: in colour, in Unicode, in how many columns."""

from __future__ import annotations

import codecs
import os
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TextIO

if TYPE_CHECKING:
    from collections.abc import Mapping


class ColorChoice(str, Enum):
    """What ``--color`` may say."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Look(NamedTuple):
    """How to write; ``columns`` is None where lines have no limit, as in a pipe or a file."""

    color: bool
    unicode: bool
    columns: int | None


def look_of(
    stream: TextIO, environ: Mapping[str, str], choice: ColorChoice = ColorChoice.AUTO
) -> Look:
    """How to write to a stream.

    ``NO_COLOR`` (https://no-color.org) wins over ``FORCE_COLOR``, both win over what the
    terminal is, and ``choice`` wins over all, as in CPython's own coloured output. An empty
    variable counts as unset, and ``FORCE_COLOR=0`` too.
    """
    terminal = stream.isatty()
    return Look(
        color=_color(terminal, environ, choice),
        unicode=_is_utf8(stream),
        columns=_columns(stream, environ) if terminal else None,
    )


def _color(terminal: bool, environ: Mapping[str, str], choice: ColorChoice) -> bool:
    if choice is not ColorChoice.AUTO:
        return choice is ColorChoice.ALWAYS
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return terminal and environ.get("TERM") != "dumb"


def _is_utf8(stream: TextIO) -> bool:
    try:
        return codecs.lookup(stream.encoding or "ascii").name in ("utf-8", "utf-8-sig")
    except LookupError:
        return False


def _columns(stream: TextIO, environ: Mapping[str, str]) -> int | None:
    said = environ.get("COLUMNS", "")
    if said.isascii() and said.isdigit() and len(said) < 6 and int(said) > 0:
        return int(said)
    try:
        # 0 is what a terminal without a known size reports.
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None
