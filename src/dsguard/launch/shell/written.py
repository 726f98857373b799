"""Which files the commands of a script write: by redirection, ``tee``, ``cp`` and the like.

What a launch reads may be another file by then than the one that lies there now. Only commands that
plainly write count: reading a config, copying it elsewhere or logging changes nothing.
"""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase
from itertools import pairwise
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
_CLOUDS = {"aws": ["s3"], "gsutil": [], "gcloud": ["storage"]}
"""Programs that copy between here and a bucket, and what comes before their ``cp``."""
_OF_A_FOLDER = frozenset(("rsync", "sync"))
_SRUN_VALUES = re.compile(
    r"-[nNcptwGJAq]|--(?:ntasks|nodes|cpus-per-task|partition|time|nodelist|gpus|job-name|account)"
    r"|--(?:ntasks-per-node|gres|mem|qos)"
)
"""Options of ``srun`` whose value is the next word."""
_HERE = re.compile(
    r"(?:\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`"
    r"|\$\(dirname [\"']?\$\{?(?:0|BASH_SOURCE(?:\[0\])?)\}?[\"']?\)"
    r"|\$\{?(?:D|DIR|HERE|SLURM_SUBMIT_DIR|(?:SCRIPT|BASE|ROOT|CURRENT)_?DIR)\}?)/"
)
"""How scripts spell the folder that they run or lie in, which is hardly another one."""
_GLOB = re.compile(r"[*?\[]")
_MOST_PATTERNS = 50
_LONGEST = 100
"""So many patterns of file names are looked at, and so long ones."""
_GENERATOR = re.compile(
    r"(?:make|mk|gen|generate|write|create|build|render)"
    r"(?:[_-]?(?:ds|deepspeed|zero\d?))?(?:[_-]?(?:config|conf|cfg|json))?\.py"
)
"""Python programs that write the configs they are given."""
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
        self._patterns: dict[str, int] = {}
        for file in files:
            name, place = posixpath.basename(file.path), _place(file.folder, file.path)
            if file.known and len(name) <= _LONGEST and _GLOB.search(name):
                if place in self._patterns or len(self._patterns) < _MOST_PATTERNS:
                    self._patterns.setdefault(place, file.at)
                continue
            self._names[name] = min(file.at, self._names.get(name, file.at))
            if file.known:
                self._places[place] = min(file.at, self._places.get(place, file.at))

    def writes(self, path: str, folder: str | None, at: int) -> bool:
        """Whether the commands before write the file that a launch reads in a folder."""
        place = _place(folder, path)
        return self._places.get(place, at + 1) <= at or any(
            posixpath.dirname(place) == posixpath.dirname(pattern)
            for pattern in self._matching(path, at)
        )

    def writes_named(self, path: str, at: int) -> bool:
        """Whether the commands before write a file of that name, in whatever folder."""
        return self._names.get(posixpath.basename(path), at + 1) <= at or any(
            self._matching(path, at)
        )

    def _matching(self, path: str, at: int) -> Iterator[str]:
        """The patterns of files written before that the name of a file matches."""
        name = posixpath.basename(path)
        for pattern, first in self._patterns.items():
            if first <= at and fnmatchcase(name, posixpath.basename(pattern)):
                yield pattern


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
        text, known = text_of(value), is_known(value)
        here = None if known else _HERE.match(text)
        yield (text[here.end() :], "$" not in text[here.end() :]) if here else (text, known)
    texts = [(text_of(value), is_known(value)) for value in words]
    at = 0
    while at < len(texts) and (texts[at][0] in _BEFORE or _ASSIGNMENT.match(texts[at][0])):
        at += 1
    if at < len(texts) and texts[at][0] == "srun":
        at += 1
        while at < len(texts) and texts[at][0].startswith("-"):
            at += 2 if _SRUN_VALUES.fullmatch(texts[at][0]) else 1
    texts = texts[at:]
    if not texts:
        return
    name = posixpath.basename(texts[0][0])
    given = texts[1:]
    operands = [one for one in given if not one[0].startswith("-")]
    if name in _COPIES:
        yield from _copied(name, given, operands)
    elif name in _CLOUDS:
        yield from _from_a_cloud(_CLOUDS[name], operands)
    elif name == "git":
        yield from _checked_out(given, operands)
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
            yield from _generated(given)


def _place(folder: str | None, path: str) -> str:
    """A file as seen from where the script is started, or from a folder that nobody knows."""
    return posixpath.normpath(posixpath.join("?" if folder is None else folder, path))


def _copied(
    name: str, given: Sequence[tuple[str, bool]], operands: Sequence[tuple[str, bool]]
) -> Iterator[tuple[str, bool]]:
    """The target of a copy: itself, or the files of the same names in it.

    They are a pattern where the names are one, or where all of a folder is copied.
    """
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
        last = re.split("[/:]", text)[-1]
        if (last == "." and text != ".") or (last == "" and name in _OF_A_FOLDER):
            last, known = "*", True
        elif _GLOB.search(last):
            # A bare pattern of rsync is what --exclude is given.
            known = "$" not in last and (name != "rsync" or last != text)
        yield posixpath.join(target[0], last), known and target[1]


def _from_a_cloud(
    before: list[str], operands: Sequence[tuple[str, bool]]
) -> Iterator[tuple[str, bool]]:
    words = [text for text, _ in operands]
    if words[: len(before)] != before or len(words) < len(before) + 3:
        return
    verb, copied = words[len(before)], operands[len(before) + 1 :]
    if verb in ("cp", "mv", "rsync", "sync") and "://" not in copied[-1][0]:
        yield from _copied(verb, copied, copied)


def _checked_out(
    given: Sequence[tuple[str, bool]], operands: Sequence[tuple[str, bool]]
) -> Iterator[tuple[str, bool]]:
    """The files that ``git checkout … -- FILE`` and ``git restore FILE`` write."""
    verb = operands[0][0] if operands else ""
    if verb == "restore":
        yield from operands[1:]
    elif verb == "checkout" and ("--", True) in given:
        yield from given[given.index(("--", True)) + 1 :]


def _generated(given: Sequence[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    """The configs that a program which is there to write some is given, without an option."""
    if not given or not _GENERATOR.fullmatch(posixpath.basename(given[0][0])):
        return
    for (option, _), (text, known) in pairwise(given):
        if not option.startswith("-") and text.endswith((".json", ".yaml", ".yml")):
            yield text, known


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
