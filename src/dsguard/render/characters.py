"""Making any text safe to show.

Keys, paths and commands are the user's and may hold anything. What is shown must not move
the cursor, reorder the line, break it, or be impossible to encode.
"""

from __future__ import annotations

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

_ASCII = str.maketrans(
    {
        "×": "x",
        "÷": "/",
        "·": "*",
        "…": "...",
        "–": "-",
        "—": "-",
        "→": "->",
        "≤": "<=",
        "≥": ">=",
        "≠": "!=",
    }
)
"""ASCII for the signs that dsguard's own sentences use."""


def visible(text: str, *, unicode: bool) -> str:
    r"""The text with every character that has no shape of its own written as an escape.

    Control characters, bidirectional marks, line separators, lone surrogates and blanks
    other than the space become ``\x1b``, ``\u202e`` and so on; without ``unicode`` so does
    everything outside ASCII. The result stays on one line.
    """
    if text.isprintable() and (unicode or text.isascii()):
        return text
    return "".join(
        char if char.isprintable() and (unicode or char.isascii()) else _escape(char)
        for char in text
    )


def sentence(text: str, *, unicode: bool) -> str:
    """A sentence of dsguard's own, made safe; without ``unicode`` its signs are spelled out.

    A source line goes through :func:`visible` instead: there, a long dash for a short one
    may be the very mistake.
    """
    return visible(text if unicode else text.translate(_ASCII), unicode=unicode)


def ellipsis(*, unicode: bool) -> str:
    """What stands for text left out."""
    return "…" if unicode else "..."


def _escape(char: str) -> str:
    code = ord(char)
    if char in _NAMED:
        return _NAMED[char]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
