"""Guessing which key was meant, and where a misplaced key belongs."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from packaging.version import Version

from dsguard.schema.block import Block
from dsguard.schema.keys import all_keys
from dsguard.schema.shape import fields_of

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
    here = list(fields_of(block))
    same = [name for name in here if _plain(name) == _plain(key)]
    if same:
        return Hint(tuple(same[:1]), (), False)
    elsewhere = _parents(block.release)
    if key in elsewhere and key not in _GENERIC:
        return Hint((key,), _nearest(elsewhere[key], dotted), True)
    from difflib import get_close_matches  # only for keys that nobody knows

    close = get_close_matches(key, here, n=3, cutoff=0.75)
    if close:
        return Hint(tuple(close), (), False)
    candidates = [name for name in elsewhere if name not in _GENERIC]
    close = get_close_matches(key, candidates, n=2, cutoff=0.85)
    if close:
        return Hint(tuple(close), _nearest(elsewhere[close[0]], dotted), False)
    return Hint((), (), False)


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
