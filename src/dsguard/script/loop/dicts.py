"""Dicts of the script that may become a DeepSpeed config."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dsguard.script.declaration import Constant, FromArgument, Unreadable
from dsguard.script.loop.description import (
    Around,
    Block,
    Counted,
    DictEntry,
    DictLiteral,
    DictValue,
    FromConfig,
)
from dsguard.script.loop.values import Dict, Entry

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Iterator

    from dsguard.script.arguments import Arguments
    from dsguard.script.module import LocalModule

DICT_READS = frozenset({"keys", "values", "items", "copy", "get"})
"""Methods of a dict that leave it as it is."""

_DEEPEST = 12
_MOST_VALUES = 10_000
"""Dicts that hold one another many times over grow with every level; a config has some hundred."""


def written_dict(
    node: ast.Dict,
    keys: Iterable[Any],
    values: Iterable[Any],
    module: LocalModule,
    blocks: Iterable[Block],
) -> Dict:
    """The dict that a display such as ``{"train_batch_size": 8, **more}`` makes."""
    made = Dict(node, module.locate(node), tuple(blocks))
    for key_node, value_node, key, value in zip(node.keys, node.values, keys, values, strict=True):
        if key_node is None:
            merge(made, value)
        elif isinstance(key, Constant) and isinstance(key.value, str):
            entry = Entry(
                value,
                module.locate(key_node),
                module.locate(value_node),
                module.places.excerpt(value_node),
            )
            made.entries[key.value] = entry
        else:
            made.lost = "a key of it is computed"
    return made


def merge(into: Dict, value: Any, blocks: Iterable[Block] | None = None) -> None:
    """Add the entries of another dict, as ``**`` and ``update`` do.

    ``blocks`` stand around ``update``, which is left out where they are not entered.
    """
    if not (isinstance(value, Dict) and not value.lost and (value.file is None or _is_fresh(into))):
        into.lost = "it takes entries from something that is only known when the script runs"
        return
    if blocks is None or not _is_conditional(blocks, into.blocks):
        into.entries.update(value.entries)
        into.nested.update(value.nested)
        into.file = value.file or into.file
    elif value.file is not None:
        into.lost = "it takes entries of a file under a condition"
    else:
        for key, entry in value.entries.items():
            into.entries[key] = _in_doubt(entry, into.entries.get(key))


def _in_doubt(entry: Entry, before: Entry | None) -> Entry:
    """An entry that is written under a condition, over one that may be there before."""
    value = Unreadable("it is set under a condition")
    return replace(entry, value=value, perhaps=before is None or before.perhaps)


def keyword_entries(node: ast.Call, arguments: Arguments, module: LocalModule) -> dict[str, Entry]:
    """What ``dict(key=value, **more)`` and ``update(key=value, **more)`` write."""
    found = {
        keyword.arg: Entry(
            arguments.keywords[keyword.arg],
            module.locate(keyword),
            module.locate(keyword.value),
            module.places.excerpt(keyword.value),
        )
        for keyword in node.keywords
        if keyword.arg is not None
    }
    for unpacked in arguments.unpacked:
        found |= unpacked.entries
    return found


def _is_fresh(made: Dict) -> bool:
    return not made.entries and made.file is None


def _is_conditional(here: Iterable[Block], there: Iterable[Block]) -> bool:
    """Whether a statement may be left out in a run that made the dict; ``with`` blocks are not."""
    now, then = (
        [block for block in blocks if block.around is not Around.CONTEXT]
        for blocks in (here, there)
    )
    return now[: len(then)] != then or len(now) > len(then)


def store_below(
    into: FromConfig, key: Any, value: Any, node: ast.AST, module: LocalModule, blocks: list[Block]
) -> None:
    """``config["optimizer"]["params"]["lr"] = value`` of a config that was loaded."""
    of = into.of
    if not isinstance(of, Dict):
        return
    if not (isinstance(key, Constant) and isinstance(key.value, str)):
        of.lost = "a key of it is computed"
        return
    where, text = module.locate(node), module.places.excerpt(node)
    keys = (*into.path, key.value)
    entry = Entry(value, where, where, text)
    if _is_conditional(blocks, of.blocks):
        entry = _in_doubt(entry, of.nested.get(keys))
    of.nested[keys] = entry


def changes(of: Dict) -> tuple[tuple[tuple[str, ...], DictEntry], ...] | None:
    """What was done to a config after it was loaded; None where that is not known."""
    if of.lost:
        return None
    found: list[tuple[tuple[str, ...], Entry]] = [
        ((key,), entry) for key, entry in of.entries.items()
    ]
    found += of.nested.items()
    left = iter(range(_MOST_VALUES))
    return tuple((path, _entry(path[-1], entry, 1, left)) for path, entry in found)


def store(
    into: Dict, key: Any, value: Any, node: ast.AST, module: LocalModule, blocks: list[Block]
) -> None:
    """``into[key] = value``; under a condition the value may be this one or the one before."""
    if not (isinstance(key, Constant) and isinstance(key.value, str)):
        into.lost = "a key of it is computed"
        return
    where, text = module.locate(node), module.places.excerpt(node)
    before = into.entries.get(key.value)
    if before is not None and before.location.source is not where.source:
        where = before.location
    elif into.location.source is not where.source:
        where = into.location
    key_where = before.key_location if before is not None else where
    entry = Entry(value, key_where, where, text)
    if _is_conditional(blocks, into.blocks):
        entry = _in_doubt(entry, before)
    into.entries[key.value] = entry


def literal(of: Dict) -> DictLiteral | None:
    """The dict as rules see it; None where its content is not known."""
    return _literal(of, 0, iter(range(_MOST_VALUES)))


def _literal(of: Dict, depth: int, left: Iterator[int]) -> DictLiteral | None:
    """``left`` gives one number for each value that may still be looked at."""
    if not of.is_whole or depth > _DEEPEST:
        return None
    entries = tuple(_entry(key, entry, depth, left) for key, entry in of.entries.items())
    return DictLiteral(of.location, entries)


def _entry(key: str, entry: Entry, depth: int, left: Iterator[int]) -> DictEntry:
    value = _value(entry, depth, left)
    return DictEntry(key, entry.key_location, value, entry.location, entry.text, entry.perhaps)


_UNREAD = Unreadable("it is only known when the script runs")


def _value(entry: Entry, depth: int, left: Iterator[int]) -> DictValue:
    value: Any = entry.value
    if next(left, None) is None:
        return _UNREAD
    if isinstance(value, Dict):
        return _literal(value, depth + 1, left) or _UNREAD
    if isinstance(value, Constant) and isinstance(value.value, (list, tuple)):
        return tuple(
            DictEntry("", entry.location, Constant(member), entry.location, entry.text)
            for member in value.value
        )
    members = getattr(value, "members", None)
    if isinstance(members, tuple):
        return tuple(_entry("", replace(entry, value=m), depth + 1, left) for m in members)
    if isinstance(value, (Constant, FromArgument, Counted)):
        return value
    return _UNREAD
