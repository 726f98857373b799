"""Launch commands without what is nobody's business.

A command is kept in reports, in contracts and beside checkpoints, which others read. Keys and
passwords that stand in it do not go there.
"""

from __future__ import annotations

import re
from itertools import pairwise
from shlex import quote
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dsguard.launch.context import Command

HIDDEN = "***"
"""What stands in place of a secret."""

_SECRET = frozenset(
    ("apikey", "credential", "credentials", "passphrase", "passwd", "password", "secret", "secrets")
)
_KEYS = frozenset(("access", "api", "auth", "private"))
_ABOUT = frozenset(("dir", "file", "id", "name", "path"))
"""A name that ends so says where a secret lies, not what it is."""

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NO_TOKEN = re.compile(r"[-+.0-9e_]*|true|false|yes|no|none|null|on|off|[<\[].*[>\]]", re.I)
"""Values of ``--use_auth_token true``, ``--image_token 256`` and ``--pad_token '<pad>'``."""

_NAMED = re.compile(r"([-+]*[A-Za-z_][\w.-]*)=(.*)", re.S)
_INSIDE = re.compile(
    r"(?<![\w.-])(--?[A-Za-z][\w.-]*[\s=]\s*|[A-Za-z_][\w.-]*=)(\"[^\"]*\"|'[^']*'|[^\s,;'\"]+)"
)
"""A value with its name in a word that holds more, as of ``bash -c`` and ``srun --export``."""


def line_without_secrets(command: Command) -> str:
    """The command as one line, with ``***`` for the values of names like ``HF_TOKEN``.

    These are variables set for the command, its flags, and settings such as ``hub.token=…``.
    """
    line = command.line
    written = command.source.text
    if command.source.is_file:
        shown = [quote(word.text) if word.known else word.text for word in command.words]
    else:
        shown = [written[word.span.start : word.span.end] for word in command.words]
    hidden = list(shown)
    flag = ""
    for index, word in enumerate(command.words):
        text = word.text
        if flag and not text.startswith("-") and _is_secret(flag, text):
            hidden[index] = HIDDEN
        elif (named := _NAMED.fullmatch(text)) and _is_secret(named[1], named[2]):
            hidden[index] = f"{named[1]}={HIDDEN}"
        elif (inside := _INSIDE.sub(_hide, text)) != text:
            hidden[index] = quote(inside)
        flag = text if text.startswith("-") and "=" not in text else ""
    if hidden == shown:
        return line
    if command.source.is_file:
        return " ".join(hidden)
    spans = [(word.span, text) for word, text in zip(command.words, hidden, strict=True)]
    for span, text in sorted(spans, reverse=True):
        written = written[: span.start] + text + written[span.end :]
    return written


def _hide(found: re.Match[str]) -> str:
    name = found[1].rstrip("= \t\n")
    return found[1] + HIDDEN if _is_secret(name, found[2].strip("\"'")) else found[0]


def _is_secret(name: str, value: str) -> bool:
    """Whether a value is a secret, by the name that it is given."""
    parts = [part.lower() for part in _PARTS.findall(name)]
    if not parts or not value or parts[-1] in _ABOUT:
        return False
    if not _SECRET.isdisjoint(parts):
        return True
    if any(one in _KEYS and two == "key" for one, two in pairwise(parts)):
        return True
    return parts[-1] == "token" and _NO_TOKEN.fullmatch(value) is None
