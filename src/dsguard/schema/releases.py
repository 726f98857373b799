"""A block as one release of DeepSpeed had it."""

from __future__ import annotations

from typing import Any, TypeVar

from packaging.version import Version

from dsguard.schema.block import Block, CheckedBlock, UnknownKeys, cached
from dsguard.schema.history import NEWEST_KNOWN, OLDEST_KNOWN

BlockT = TypeVar("BlockT", bound=Block)


def as_of(block: type[BlockT], release: Version) -> type[BlockT]:
    """The block with the keys, types and defaults of a release, and so all blocks inside it.

    A release that is older or newer than those known counts as the nearest one that is.
    """
    return _as_of(block, min(max(release, OLDEST_KNOWN), NEWEST_KNOWN))


@cached
def _as_of(block: type[BlockT], release: Version) -> type[BlockT]:
    """A class that inherits all declarations; each is read for its release when asked for."""
    named: dict[str, Any] = {
        "__module__": block.__module__,
        "__doc__": block.__doc__,
        "release": release,
        "with_history": block,
    }
    if issubclass(block, CheckedBlock) and release < block.checked_since:
        named["unknown_keys"] = UnknownKeys.IGNORED
    return type(block.__name__, (block,), named)
