"""Keys that a block does not have in a release: too new, removed, misplaced or unknown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from packaging.version import Version

from dsguard.model.finding import Consequence
from dsguard.schema import names, wording
from dsguard.schema.block import Block, UnknownKeys
from dsguard.schema.history import NEWEST_KNOWN
from dsguard.schema.problem import Place, Problem
from dsguard.schema.shape import fields_of


def stranger(
    block: type[Block], key: str, value: Any, at: Place, target: Version, *, dropped: bool
) -> Iterator[Problem]:
    """What DeepSpeed does with a key of the block at a place that its release does not have.

    ``dropped`` says that the block's model never sees the key, because its value is ``"auto"``.
    """
    place = at.child(key)
    refused = block.unknown_keys is UnknownKeys.REFUSED and not dropped
    known = fields_of(block.with_history or block).get(key)
    if known is not None:
        gone = known.history.gone_since(target)
        if gone is None:
            since, fate = known.history.since, _consequence(refused)
            yield wording.too_new_key(place, value, fate, since=since, target=target)
        else:
            stops = known.history.refused_when_gone and gone == known.history.removed
            yield wording.removed_key(
                place,
                value,
                _consequence(refused or stops),
                removed_in=gone,
                target=target,
                replacement=known.history.replaced_by,
            )
        return
    if not refused and not dropped and names.is_comment(key):
        return
    hint = names.hint(key, block, at.dotted)
    yield wording.unknown_key(
        place,
        value,
        # A release that nobody has looked at yet may well have the key.
        _consequence(refused and target <= NEWEST_KNOWN),
        newer_than_known=target if target > NEWEST_KNOWN else None,
        dropped=dropped,
        suggestions=hint.suggestions,
        belongs=hint.belongs,
        misplaced=hint.misplaced,
    )


def _consequence(refused: bool) -> Consequence:
    return Consequence.REFUSED if refused else Consequence.IGNORED
