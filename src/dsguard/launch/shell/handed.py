"""Commands that hand a shell text to another shell: on their command line or standard input.

Sources: the manual pages of ssh, pdsh, tmux and sbatch; Bash Reference Manual, section 6.1.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from dsguard.launch.prefixes import SHELLS
from dsguard.launch.shell.kinds import names_shell
from dsguard.launch.shell.text import Chunk, Text, Value, is_known, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dsguard.launch.shell.expand import Field

_WRAP = "--wrap"
_WITH_VALUE = {
    "ssh": "BbcDEeFIiJLlmOopQRSWw",
    "pdsh": "wxgXlfutR",
    "new-session": "cefFnstxy",
    "new-window": "ceFnt",
    "split-window": "ceFlpt",
    "send-keys": "Nt",
}
"""The short options whose value is the next word."""
_TMUX = {
    "new": "new-session", "neww": "new-window", "splitw": "split-window", "send": "send-keys",
}  # fmt: skip
_KEY = re.compile(r"Enter|KPEnter|Space|Tab|Escape|BSpace|[CMS]-\S+")


class Where(Enum):
    """Where the other shell runs: as a program started here, on other machines, or as a job."""

    HERE = "here"
    APART = "apart"
    JOB = "job"


class Handed(NamedTuple):
    """A text for another shell; ``before`` are the words that start that shell."""

    text: Text
    where: Where
    before: tuple[Field, ...] = ()


def handed_in_words(fields: Sequence[Field]) -> Handed | None:
    """The text on the command line of ``ssh``, ``pdsh``, ``tmux`` and ``sbatch --wrap``."""
    name = _word(fields[0]).rpartition("/")[2]
    if name == "sbatch":
        wrapped = _wrapped(fields)
        return Handed(Text(wrapped), Where.JOB, tuple(fields)) if wrapped else None
    if name == "tmux":
        at = _operand(fields, 1, "LSfc")
        name = _word(fields[at]) if at < len(fields) else ""
        name = _TMUX.get(name, name)
        if name not in _WITH_VALUE:
            return None
        first = _operand(fields, at + 1, _WITH_VALUE[name])
        words = [field for field in fields[first:] if not _KEY.fullmatch(_word(field))]
    elif name in ("ssh", "pdsh"):
        first = _operand(fields, 1, _WITH_VALUE[name]) + (name == "ssh")
        words = list(fields[first:])
    else:
        return None
    return Handed(Text(spaced([field.chunks for field in words])), Where.APART) if words else None


def handed_as_input(fields: Sequence[Field], first_line: str) -> Handed | None:
    """Whether the text on standard input is for a shell: it runs there, or is a whole script.

    What ``cat`` writes to a file is a script, too, where its first line says so. The text itself is
    still to be put in.
    """
    text = Text(())
    names = [_word(field).rpartition("/")[2] for field in fields]
    shell = next((at for at, name in enumerate(names) if name in SHELLS), None)
    reads = shell is not None and _reads_input(names[shell + 1 :])
    if names[0] == "ssh" and (reads or _operand(fields, 1, _WITH_VALUE["ssh"]) + 1 == len(fields)):
        return Handed(text, Where.APART)
    if shell is not None and reads:
        return Handed(text, Where.HERE, tuple(fields[:shell]))
    return Handed(text, Where.JOB) if names_shell(first_line) else None


def spaced(values: Sequence[Value]) -> list[Chunk]:
    """Several values with a blank between them."""
    chunks: list[Chunk] = []
    for value in values:
        if chunks:
            chunks.append(Chunk(" ", chunks[-1].places))
        chunks.extend(value)
    return chunks


def _wrapped(fields: Sequence[Field]) -> Value:
    for at, field in enumerate(fields):
        text = text_of(field.chunks)
        if text == _WRAP and at + 1 < len(fields):
            return fields[at + 1].chunks
        if text.startswith(f"{_WRAP}="):
            return Text(field.chunks).slice(len(_WRAP) + 1, len(text))
    return ()


def _reads_input(words: Sequence[str]) -> bool:
    """Whether a shell with these words runs its standard input, not a file or a ``-c`` text."""
    letters = ""
    for word in words:
        if word[:1] not in ("-", "+"):
            return "s" in letters and "c" not in letters
        letters += word[1:] if word[:2] != "--" else ""
    return "c" not in letters


def _operand(fields: Sequence[Field], start: int, with_value: str) -> int:
    """Where the first word stands that is neither an option nor an option's value."""
    at = start
    while at < len(fields) and _word(fields[at])[:1] == "-":
        option = _word(fields[at])
        at += 2 if option[-1] in with_value and len(option) == 2 else 1
    return at


def _word(field: Field) -> str:
    """The text of a word, nothing where it is not known."""
    return text_of(field.chunks) if is_known(field.chunks) else ""
