"""Settings of a config that the script writes into something that it is not followed to.

Python has more ways to hand a dict about than are followed. A statement that writes
``train_batch_size`` into something unknown writes it into the config, as a rule.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dsguard.script.declaration import Unreadable
from dsguard.script.loop.description import Config, DictEntry, DictLiteral

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dsguard.model.source import Location

_SETTINGS = frozenset(
    {
        *("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"),
        *("gradient_clipping", "zero_optimization", "fp16", "bf16", "bfloat16"),
    }
)
"""What decides how a run trains, by names that hardly anything but a DeepSpeed config has."""

_IN_ZERO = frozenset({"stage", "offload_optimizer", "offload_param"})
"""The same below ``zero_optimization``."""

_KEYS = _SETTINGS | _IN_ZERO
_PATHS = (
    *((key,) for key in sorted(_SETTINGS)),
    *(("zero_optimization", key) for key in sorted(_IN_ZERO)),
)

_WRITES = frozenset({"update", "setdefault", "__setitem__"})


def written_settings(node: ast.expr) -> Iterator[str]:
    """The settings that ``target[key] = …``, or a call such as ``target.update(…)``, writes."""
    if isinstance(node, ast.Subscript):
        keys = [node.slice]
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _WRITES:
        yield from (word.arg for word in node.keywords if word.arg in _KEYS)
        keys = [key for given in node.args[:1] for key in getattr(given, "keys", [given])]
    else:
        return
    for key in keys:
        if isinstance(key, ast.Constant) and key.value in _KEYS:
            yield str(key.value)


def with_strays(config: Config, strays: Mapping[str, Location]) -> Config:
    """A config that the script holds as a dict, without what it may write there unseen."""
    changes = [
        (path, _unknown(path, strays))
        for path in _PATHS
        if path[-1] in strays and strays.keys().isdisjoint(path[:-1])  # nothing of it is known
    ]
    if config.literal is not None:
        literal = config.literal
        for path, entry in changes:
            literal = _put(literal, path, entry)
        return replace(config, literal=literal)
    if config.changes is None:
        return config
    return replace(config, changes=(*config.changes, *changes))


def _unknown(path: tuple[str, ...], strays: Mapping[str, Location]) -> DictEntry:
    key, where = path[-1], strays[path[-1]]
    value = Unreadable("the script may write it unseen")
    return DictEntry(key, where, value, where, key, perhaps=True)


def _put(of: DictLiteral, path: tuple[str, ...], entry: DictEntry) -> DictLiteral:
    """The dict with this entry; in a block that it does not have, there is nothing to write."""
    before = of.get(path[0])
    if len(path) > 1:
        if before is None or not isinstance(before.value, DictLiteral):
            return of
        entry = replace(before, value=_put(before.value, path[1:], entry))
    elif before is not None:
        entry = replace(before, value=entry.value, text=entry.text)
    elif entry.location.source is not of.location.source:
        entry = replace(entry, key_location=of.location, location=of.location)
    others = (other for other in of.entries if other.key != path[0])
    return replace(of, entries=(*others, entry))
