"""Looking a key up: what it means, since when it exists, what takes its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from packaging.version import Version

from dsguard.model.tree import split_pointer
from dsguard.schema.block import NEWEST_KNOWN, OLDEST_KNOWN, Block, UnknownKeys
from dsguard.schema.config import Config
from dsguard.schema.shape import FieldFacts, fields_of

__all__ = ["NEWEST_KNOWN", "OLDEST_KNOWN", "KeyInfo", "all_keys", "find"]


@dataclass(frozen=True)
class KeyInfo:
    """A key of the config.

    ``dotted`` is its path in the documented spelling, with ``*`` for a name that is free;
    ``spellings`` are all its spellings. ``type`` says in words what it takes. ``unknown_keys``
    is, for a key that holds a block, what DeepSpeed does with unknown keys in it, else None.
    ``since`` 0.9.0 means that release or an older one; ``until`` is None while it exists.
    """

    dotted: str
    spellings: tuple[str, ...]
    type: str
    default: Any
    doc: str
    since: Version
    until: Version | None
    deprecated: str | None
    replaced_by: str | None
    unknown_keys: UnknownKeys | None


def find(path: str) -> KeyInfo | None:
    """The key at a JSON pointer (``/zero_optimization/stage``) or dotted path, if there is one."""
    tokens = split_pointer(path) if path.startswith("/") else path.split(".")
    block: type[Block] | None = Config
    free_names: type[Block] | None = None
    facts: FieldFacts | None = None
    dotted: list[str] = []
    for token in tokens:
        if free_names is not None:
            dotted.append("*")
            block, free_names, facts = free_names, None, None
            continue
        facts = fields_of(block).get(token) if block is not None else None
        if facts is None:
            return None
        dotted.append(facts.name)
        block, free_names = facts.shape.block, facts.shape.blocks
    return _info(".".join(dotted), facts) if facts else None


@cache
def all_keys() -> tuple[KeyInfo, ...]:
    """Every key of the newest known release."""
    return tuple(_keys(Config, ""))


def _keys(block: type[Block], prefix: str) -> Iterator[KeyInfo]:
    for facts in dict.fromkeys(fields_of(block).values()):
        dotted = prefix + facts.name
        yield _info(dotted, facts)
        if facts.shape.block is not None:
            yield from _keys(facts.shape.block, f"{dotted}.")
        if facts.shape.blocks is not None:
            yield from _keys(facts.shape.blocks, f"{dotted}.*.")


def _info(dotted: str, facts: FieldFacts) -> KeyInfo:
    block = facts.shape.block
    return KeyInfo(
        dotted=dotted,
        spellings=facts.spellings,
        type=facts.shape.expected,
        default=facts.default,
        doc=facts.doc,
        since=facts.since,
        until=facts.until,
        deprecated=facts.deprecated,
        replaced_by=facts.replaced_by,
        unknown_keys=block.unknown_keys if block is not None else None,
    )
