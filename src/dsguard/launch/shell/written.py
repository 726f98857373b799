"""Which files the commands of a script write: by redirection, ``tee``, ``cp`` and the like.

What a launch reads may be another file by then than the one that lies there now. Only commands that
plainly write count: reading a config, copying it elsewhere or logging changes nothing.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, NamedTuple

from dsguard.launch.launchers import is_python
from dsguard.launch.shell.text import is_known, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dsguard.launch.shell.text import Value

_BEFORE = frozenset(("builtin", "command", "env", "exec", "nice", "nohup", "sudo", "time"))
"""Words before a command that change nothing of what it writes."""
_COPIES = frozenset(("cp", "install", "link", "ln", "mv", "rsync", "scp"))
_EVERY = frozenset(("ed", "ex", "patch", "sponge", "tee", "truncate"))
"""Commands that write whatever file they are given."""
_IN_PLACE = {
    "sed": re.compile(r"-[nErsuz]*i|--in-place"),
    "perl": re.compile(r"-[pnlaw0]*i"),
    "ruby": re.compile(r"-[pnlaw0]*i"),
    "yq": re.compile(r"-[a-zA-Z]*i|--in-?place"),
}
_FETCHES = frozenset(("curl", "wget"))
_INTO = re.compile(r"(?:-[oO]|--(?:out|output|save|write|dest|destination)[-\w]*)(?:=(.+))?")
"""An option of any program whose value is a file to write."""
_FETCHED_INTO = re.compile(r"-[a-zA-Z]*[oO]|--output(?:-document)?(?:=(.+))?")
"""The same, as ``curl -sSLo`` and ``wget -qO`` have it."""
_READERS = frozenset(
    (
        "[",
        "egrep",
        "fgrep",
        "find",
        "git",
        "grep",
        "kubectl",
        "ls",
        "ps",
        "rg",
        "set",
        "ssh",
        "test",
    )
)
"""Commands whose ``-o`` is something else."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_OPENED = re.compile(
    r"""(["'])(?P<a>[^"'\n]+)\1\s*,\s*(?:mode\s*=\s*)?["'][wax]"""
    r"""|(["'])(?P<b>[^"'\n]+)\3\s*\)\s*\.(?:write_text|write_bytes|open\(\s*["'][wax])"""
)
_MAKES = re.compile(r"""["'][wax]b?\+?["']|write_(?:text|bytes)|\.to_(?:json|yaml)""")
_QUOTED = re.compile(r"""(["'])([^"'\n\s]+\.\w+)\1""")


class WrittenFile(NamedTuple):
    """A file that a command writes.

    ``path`` is as the command gets it, and what only a running shell knows of it as it is spelt;
    ``known`` says that nothing of that kind is in it. ``folder`` is where the command runs,
    relative to where the script is started, None where nobody knows. ``at`` counts the commands
    that are met until it is written.
    """

    path: str
    known: bool
    folder: str | None
    at: int


class WrittenFiles:
    """What a script writes, and from which command on."""

    def __init__(self, files: Iterable[WrittenFile]) -> None:
        self._places: dict[str, int] = {}
        self._names: dict[str, int] = {}
        for file in files:
            name, place = posixpath.basename(file.path), _place(file.folder, file.path)
            self._names[name] = min(file.at, self._names.get(name, file.at))
            if file.known:
                self._places[place] = min(file.at, self._places.get(place, file.at))

    def writes(self, path: str, folder: str | None, at: int) -> bool:
        """Whether the commands before write the file that a launch reads in a folder."""
        return self._places.get(_place(folder, path), at + 1) <= at

    def writes_named(self, path: str, at: int) -> bool:
        """Whether the commands before write a file of that name, in whatever folder."""
        return self._names.get(posixpath.basename(path), at + 1) <= at


def files_written(
    words: Sequence[Value], outputs: Sequence[Value], python: Iterable[str]
) -> Iterator[tuple[str, bool]]:
    """The files that a command writes, and whether their whole path is known.

    Args:
        words: the command.
        outputs: where its output is redirected to.
        python: the texts on its standard input, which are taken where it is Python.
    """
    for value in outputs:
        yield text_of(value), is_known(value)
    texts = [(text_of(value), is_known(value)) for value in words]
    while texts and (texts[0][0] in _BEFORE or _ASSIGNMENT.match(texts[0][0])):
        del texts[0]
    if not texts:
        return
    name = posixpath.basename(texts[0][0])
    given = texts[1:]
    operands = [one for one in given if not one[0].startswith("-")]
    if name in _COPIES:
        yield from _copied(given, operands)
    elif name in _EVERY:
        yield from operands
    elif name in _IN_PLACE:
        if any(_IN_PLACE[name].match(text) for text, _ in given):
            yield from operands
    elif name == "dd":
        yield from ((text[3:], known) for text, known in given if text.startswith("of="))
    elif name in _FETCHES:
        yield from _into(given, _FETCHED_INTO)
        yield from ((posixpath.basename(text), True) for text, _ in operands if "://" in text)
    elif name not in _READERS:
        yield from _into(given, _INTO)
        if is_python(name):
            yield from _by_python([*python, *_inline(given)])


def _place(folder: str | None, path: str) -> str:
    """A file as seen from where the script is started, or from a folder that nobody knows."""
    return posixpath.normpath(posixpath.join("?" if folder is None else folder, path))


def _copied(
    given: Sequence[tuple[str, bool]], operands: Sequence[tuple[str, bool]]
) -> Iterator[tuple[str, bool]]:
    """The target of a copy: itself, or the files of the same names in it."""
    sources, target = operands[:-1], operands[-1] if operands else ("", False)
    for at, (text, _) in enumerate(given):
        if text in ("-t", "--target-directory") and at + 1 < len(given):
            target = given[at + 1]
            sources = [one for one in operands if one != target]
    if not sources:  # ln FILE: a link of that name, here
        sources, target = operands[:1], (".", True)
    if target[0]:
        yield target
    for text, known in sources:
        yield posixpath.join(target[0], re.split("[/:]", text)[-1]), known and target[1]


def _into(
    given: Sequence[tuple[str, bool]], options: re.Pattern[str]
) -> Iterator[tuple[str, bool]]:
    for at, (text, known) in enumerate(given):
        option = options.fullmatch(text)
        if option is None:
            continue
        if option[1]:
            yield option[1], known
        elif at + 1 < len(given):
            yield given[at + 1]


def _inline(given: Sequence[tuple[str, bool]]) -> Iterator[str]:
    for at, (text, _) in enumerate(given[:-1]):
        if text == "-c":
            yield given[at + 1][0]
            return


def _by_python(texts: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """The files that a piece of Python opens for writing; all it names where that is hidden."""
    for text in texts:
        opened = [match["a"] or match["b"] for match in _OPENED.finditer(text)]
        if not opened and _MAKES.search(text):
            opened = [match[2] for match in _QUOTED.finditer(text)]
        yield from ((name, True) for name in opened)
