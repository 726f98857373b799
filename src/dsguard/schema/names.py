"""Guessing which key was meant, and where a misplaced key belongs."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from packaging.version import Version

from dsguard.schema.block import Block, cached
from dsguard.schema.keys import all_keys
from dsguard.schema.shape import fields_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_GENERIC = frozenset(
    {
        "*",
        "enabled",
        "type",
        "params",
        "names",
        "classes",
        "profile",
        "metric",
        "mode",
        "online",
        "project",
        "group",
        "team",
        "seed",
        "verbose",
        "debug",
        "fast",
        "overwrite",
        "passes",
        "partition",
        "stages",
        "ratio",
        "offload",
        "device",
        "dtype",
        "workspace",
        "detailed",
        "job_name",
        "output_path",
        "difficulty",
        "max_step",
        "max_value",
        "min_value",
        "top_k",
        "writer",
        "hidden_size",
        "num_layers",
        "num_params",
        "model_type",
        "max_tokens",
        "num_epochs",
        "num_workers",
        "output_file",
        "api_key",
    }
)
"""Names that say too little to tell where they belong."""

_COMMENT_STARTS = ("_", "#", "//", "$")
_COMMENT_NAMES = frozenset({"comment", "comments", "note", "notes", "description"})


class Hint(NamedTuple):
    """What may have been meant by a key.

    ``suggestions`` are spellings, best first; ``belongs`` the dotted paths of blocks that know the
    key (``misplaced``) or the first suggestion, empty where that is the block it stands in.
    """

    suggestions: tuple[str, ...]
    belongs: tuple[str, ...]
    misplaced: bool


def is_comment(key: str) -> bool:
    """Whether a key is meant for the reader of the file, not for DeepSpeed."""
    return key.startswith(_COMMENT_STARTS) or key.lower() in _COMMENT_NAMES


def hint(key: str, block: type[Block], dotted: str) -> Hint:
    """What may have been meant by an unknown key of the block at a dotted path."""
    here = _fields(block)
    same = here.plain.get(_plain(key))
    if same is not None:
        return Hint((same,), (), False)
    elsewhere = _parents(block.release)
    if key in elsewhere and key not in _GENERIC:
        return Hint((key,), _nearest(elsewhere[key], dotted), True)
    close = here.close_to(key, n=3, cutoff=0.75)
    if close:
        return Hint(tuple(close), (), False)
    close = _telling(block.release).close_to(key, n=2, cutoff=0.85)
    if close:
        return Hint(tuple(close), _nearest(elsewhere[close[0]], dotted), False)
    return Hint((), (), False)


class _Names:
    """Names that a key may be a slip of; ``plain`` finds one by its letters and digits."""

    def __init__(self, names: Iterable[str]) -> None:
        self.plain: dict[str, str] = {}
        self._by_length: dict[int, list[str]] = {}
        for name in names:
            self.plain.setdefault(_plain(name), name)
            self._by_length.setdefault(len(name), []).append(name)

    def close_to(self, key: str, n: int, cutoff: float) -> list[str]:
        """What ``difflib.get_close_matches`` finds; most names are too short or too long for it."""
        near = [
            name
            for length, names in self._by_length.items()
            if 2 * min(length, len(key)) >= cutoff * (length + len(key))
            for name in names
        ]
        if not near:
            return []
        from difflib import get_close_matches  # only for keys that nobody knows

        return get_close_matches(key, near, n, cutoff)


@cached
def _fields(block: type[Block]) -> _Names:
    return _Names(fields_of(block))


@cache
def _telling(release: Version) -> _Names:
    """The names of a release that say where they belong."""
    return _Names(name for name in _parents(release) if name not in _GENERIC)


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower()


@cache
def _parents(release: Version) -> dict[str, tuple[str, ...]]:
    """The dotted paths of the blocks that know a key in a release, by every spelling of the key."""
    found: dict[str, list[str]] = {}
    for info in all_keys(release):
        parent = info.dotted.rpartition(".")[0]
        if parent != "bfloat16":
            for spelling in info.spellings:
                found.setdefault(spelling, []).append(parent)
    return {name: tuple(parents) for name, parents in found.items()}


def _nearest(parents: tuple[str, ...], dotted: str) -> tuple[str, ...]:
    """At most three parents: those inside the block first, then those around it."""

    def distance(parent: str) -> tuple[int, int]:
        if parent.startswith(dotted):
            return (0, parent.count("."))
        return (1 if dotted.startswith(parent) else 2, parent.count("."))

    return tuple(sorted(parents, key=distance)[:3])
