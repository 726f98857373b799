"""The DeepSpeed config that a training script holds itself or names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dsguard.model.tree import Array, Document, Member, Node, Object, Scalar, join_pointer
from dsguard.script.declaration import Constant, FromArgument, Unreadable
from dsguard.script.lookup import argument_value
from dsguard.script.loop.description import Config, DictEntry, DictLiteral

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.frontends.requests import Requests
    from dsguard.model.source import Location, Span
    from dsguard.script.script import Script

_PLAIN = (str, int, float, bool, type(None))


def config_of_script(script: Script) -> Config | None:
    """The one config that everything in the script is given; None where there are several."""
    configs = script.loop.configs
    if not configs:
        return None
    first = configs[0]
    for other in configs[1:]:
        same_literal = (
            other.literal is not None
            and first.literal is not None
            and other.literal.location == first.literal.location
        )
        if not same_literal and (other.path is None or other.path != first.path):
            return None
    return configs[-1]


def named_by_script(config: Config, script: Script, requests: Requests) -> str | None:
    """The file name that a script gives as its config, the default of an argument included."""
    if isinstance(config.path, Constant):
        return str(config.path.value)
    if not isinstance(config.path, FromArgument):
        return None
    request = requests.argument(config.path.name)
    if request is not None:
        return request.value if isinstance(request.value, str) else None
    declared = argument_value(script, config.path.name)
    default = declared.default if declared is not None else None
    if isinstance(default, Constant) and isinstance(default.value, str):
        return default.value
    return None


def document_of(literal: DictLiteral, requests: Requests) -> Document:
    """A dict of the script as a document, with its places in the script.

    An argument stands for what the launch gives it. What is only known when the script runs is
    there as a placeholder, which no rule judges.
    """
    return Document(literal.location.source, _object(literal, requests), in_code=True)


def with_changes(document: Document, config: Config, requests: Requests) -> Document:
    """A config file as the script changes it after loading it.

    Where it is not known what the script does, the values that scripts are wont to set are
    placeholders, which no rule judges, and any key may come to those that are there.
    """
    if not isinstance(document.root, Object):
        return document
    root: Object = document.root
    if config.changes is None:
        root = replace(root, open=True)
    elsewhere: dict[str, Location] = {}
    changes = config.changes if config.changes is not None else tuple(_perhaps_set(root, config))
    for path, entry in changes:
        if len(path) > 1 and document.get(_pointer(path[:-1])) is None:
            continue  # Python would stop with KeyError, or a condition leaves it out
        root = _put(root, path, entry, requests)
        elsewhere[_pointer(path)] = entry.location
    return replace(document, root=root, elsewhere=elsewhere)


_OFTEN_SET = frozenset(
    {
        *("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"),
        *("gradient_clipping", "zero_optimization", "optimizer", "scheduler", "fp16", "bf16"),
    }
)


def _perhaps_set(
    of: Object, config: Config, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], DictEntry]]:
    """The plain values of a config that scripts are wont to set, as ones that are not known."""
    for member in of.members:
        path = (*above, member.key)
        if path[0] not in _OFTEN_SET:
            continue
        if isinstance(member.node, Object):
            yield from _perhaps_set(member.node, config, path)
        else:
            reason = Unreadable("the script may change it")
            yield path, DictEntry(path[-1], config.location, reason, config.location, "changed")


def _pointer(path: tuple[str, ...]) -> str:
    pointer = ""
    for key in path:
        pointer = join_pointer(pointer, key)
    return pointer


def _put(into: Object, path: tuple[str, ...], entry: DictEntry, requests: Requests) -> Object:
    """An object with another value under some keys; blocks that are not there are made."""
    key, *rest = path
    before = into.member(key)
    span = before.node.span if before is not None else into.span._replace(end=into.span.start + 1)
    if rest:
        inner = before.node if before is not None else None
        block = inner if isinstance(inner, Object) else Object(span, (), {})
        node: Node = _put(block, tuple(rest), entry, requests)
    else:
        node = _placed(_node(entry, requests), span)
    key_span = before.key_span if before is not None else span
    member = Member(key, key_span, node, entry.perhaps and not rest and before is None)
    members = (*(one for one in into.members if one.key != key), member)
    return replace(into, members=members, value={one.key: one.node.value for one in members})


def _placed(node: Node, span: Span) -> Node:
    """A node of the script at a place of the file, whose own places say where it stands."""
    if isinstance(node, Object):
        members = tuple(replace(m, key_span=span, node=_placed(m.node, span)) for m in node.members)
        return Object(span, members, node.value)
    if isinstance(node, Array):
        return Array(span, tuple(_placed(item, span) for item in node.items), node.value)
    return replace(node, span=span)


def _object(literal: DictLiteral, requests: Requests) -> Object:
    members = tuple(
        Member(entry.key, entry.key_location.span, _node(entry, requests), entry.perhaps)
        for entry in literal.entries
    )
    return Object(literal.location.span, members, {m.key: m.node.value for m in members})


def _node(entry: DictEntry, requests: Requests) -> Node:
    value, span = entry.value, entry.location.span
    if isinstance(value, DictLiteral):
        return _object(value, requests)
    if isinstance(value, tuple):
        items = tuple(_node(item, requests) for item in value)
        return Array(span, items, [item.value for item in items])
    if isinstance(value, FromArgument):
        request = requests.argument(value.name)
        if request is not None:
            return _constant(request.value, entry, span)
    elif isinstance(value, Constant):
        return _constant(value.value, entry, span)
    return _unknown(entry, span)


def _constant(value: Any, entry: DictEntry, span: Span) -> Node:
    return Scalar(span, value) if isinstance(value, _PLAIN) else _unknown(entry, span)


def _unknown(entry: DictEntry, span: Span) -> Scalar:
    """A placeholder that shows the expression."""
    text = re.sub(r"[{}]", "", entry.text) or "value"
    return Scalar(span, f"${{{text}}}")


def place_of(config: Config) -> Location:
    """Where the script gives its config."""
    return config.literal.location if config.literal is not None else config.location
