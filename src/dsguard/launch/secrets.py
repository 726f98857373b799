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
_OF_TEXT = frozenset(
    {"audio", "bos", "cls", "end", "eos", "image", "mask"}
    | {"pad", "sep", "special", "start", "stop", "unk", "video"}
)
"""``--pad_token EOS`` names a token of the vocabulary."""
_ABOUT = frozenset(("dim", "dir", "file", "id", "name", "path", "size"))
"""A name that ends so says where a secret lies, not what it is."""

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NO_TOKEN = re.compile(r"[-+.0-9e_]*|true|false|yes|no|none|null|on|off|[<\[].*[>\]]", re.I)
"""Values of ``--use_auth_token true``, ``--image_token 256`` and ``--pad_token '<pad>'``."""

_NAMED = re.compile(r"([-+]*[A-Za-z_][\w.-]*)=(.*)", re.S)
_NAME_INSIDE = re.compile(
    r"(?<![\w.-])(?:--?[A-Za-z][\w.-]*(?:\s*=\s*|\s+(?!-))|[A-Za-z_][\w.-]*=)"
    r"|(?<=[\"'])[A-Za-z_][\w.-]*[\"']\s*:\s*"
)
_VALUE_INSIDE = re.compile(r"\"[^\"]*\"|'[^']*'|[^\s,;'\"]+")
"""A value with its name in a word that holds more: of ``bash -c``, ``srun --export``, JSON."""

_SCRIPT_FOLLOWS = re.compile(r"-[a-z]*c|--wrap|--export")
"""Options whose value is no setting, whatever it begins with: a shell's script, variables."""


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
        holds_more = _SCRIPT_FOLLOWS.fullmatch(flag) or _SCRIPT_FOLLOWS.match(text)
        named = None if holds_more else _NAMED.fullmatch(text)
        if flag and not text.startswith("-") and _is_secret(flag, text):
            hidden[index] = HIDDEN
        elif named and _is_secret(named[1], named[2]):
            hidden[index] = f"{named[1]}={HIDDEN}"
        elif (inside := _without_inside(text)) != text:
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


def _without_inside(text: str) -> str:
    """A word with ``***`` in place of the secrets that stand in it."""
    parts, done = [], 0
    for found in _NAME_INSIDE.finditer(text):
        name = found[0].rstrip("= \t\n:\"'")
        if found.start() < done or not _is_secret(name, "x"):
            continue
        value = _VALUE_INSIDE.match(text, found.end())
        if value is not None and _is_secret(name, value[0].strip("\"'")):
            parts += [text[done : found.end()], HIDDEN]
            done = value.end()
    return "".join([*parts, text[done:]])


def _is_secret(name: str, value: str) -> bool:
    """Whether a value is a secret, by the name that it is given."""
    parts = [part.lower() for part in _PARTS.findall(name)]
    if not parts or not value or parts[-1] in _ABOUT or value.endswith(".py"):
        return False
    if not _SECRET.isdisjoint(parts):
        return True
    if any(one in _KEYS and two == "key" for one, two in pairwise(parts)):
        return True
    if parts[-1] != "token" or (len(parts) > 1 and parts[-2] in _OF_TEXT):
        return False
    return _NO_TOKEN.fullmatch(value) is None
