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
    from collections.abc import Iterable

    from dsguard.script.module import LocalModule

_DEEPEST = 12


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


def merge(into: Dict, value: Any) -> None:
    """Add the entries of another dict, as ``**`` and ``update`` do."""
    if isinstance(value, Dict) and not value.lost and (value.file is None or _is_fresh(into)):
        into.entries.update(value.entries)
        into.nested.update(value.nested)
        into.file = value.file or into.file
    else:
        into.lost = "it takes entries from something that is only known when the script runs"


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
    if _is_conditional(blocks, of.blocks):
        value = Unreadable("it is set under a condition")
    keys = (*into.path, key.value)
    of.nested[keys] = Entry(value, where, where, text)


def changes(of: Dict) -> tuple[tuple[tuple[str, ...], DictEntry], ...] | None:
    """What was done to a config after it was loaded; None where that is not known."""
    if of.lost:
        return None
    found: list[tuple[tuple[str, ...], Entry]] = [
        ((key,), entry) for key, entry in of.entries.items()
    ]
    found += of.nested.items()
    return tuple(
        (
            path,
            DictEntry(path[-1], entry.key_location, _value(entry, 1), entry.location, entry.text),
        )
        for path, entry in found
    )


def store(
    into: Dict, key: Any, value: Any, node: ast.AST, module: LocalModule, blocks: list[Block]
) -> None:
    """``into[key] = value``; under a condition the value may be this one or the one before."""
    if not (isinstance(key, Constant) and isinstance(key.value, str)):
        into.lost = "a key of it is computed"
        return
    where, text = module.locate(node), module.places.excerpt(node)
    if _is_conditional(blocks, into.blocks):
        value = Unreadable("it is set under a condition")
    before = into.entries.get(key.value)
    if before is not None and before.location.source is not where.source:
        where = before.location
    elif into.location.source is not where.source:
        where = into.location
    key_where = before.key_location if before is not None else where
    into.entries[key.value] = Entry(value, key_where, where, text)


def literal(of: Dict, depth: int = 0) -> DictLiteral | None:
    """The dict as rules see it; None where its content is not known."""
    if not of.is_whole or depth > _DEEPEST:
        return None
    entries = []
    for key, entry in of.entries.items():
        value = _value(entry, depth)
        entries.append(DictEntry(key, entry.key_location, value, entry.location, entry.text))
    return DictLiteral(of.location, tuple(entries))


def _value(entry: Entry, depth: int) -> DictValue:
    value: Any = entry.value
    if isinstance(value, Dict):
        return literal(value, depth + 1) or Unreadable("it is only known when the script runs")
    if isinstance(value, Constant) and isinstance(value.value, (list, tuple)):
        return tuple(
            DictEntry("", entry.location, Constant(member), entry.location, entry.text)
            for member in value.value
        )
    members = getattr(value, "members", None)
    if isinstance(members, tuple):
        return tuple(
            DictEntry(
                "",
                entry.location,
                _value(replace(entry, value=m), depth + 1),
                entry.location,
                entry.text,
            )
            for m in members
        )
    if isinstance(value, (Constant, FromArgument, Counted)):
        return value
    return Unreadable("it is only known when the script runs")
