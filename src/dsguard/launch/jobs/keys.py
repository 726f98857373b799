"""The keys of a job file as arguments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dsguard.launch.context import Argument, ScriptArguments
from dsguard.model.fact import OriginKind
from dsguard.model.source import Location
from dsguard.model.tree import Document, Member, Object, join_pointer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_INTERPOLATION = r"(?a)\$\{|\$\(|\{\{|^\$\w|^\s*env:"
"""What a template engine, OmegaConf or Hydra would replace before the framework sees it."""


def members(document: Document, pointer: str = "") -> Iterator[Member]:
    """The keys of a mapping that count: of a repeated one the last."""
    node = document.get(pointer)
    if isinstance(node, Object):
        last = {member.key: member for member in node.members}
        yield from (member for member in node.members if last[member.key] is member)


def key_arguments(document: Document, names: Mapping[str, str]) -> list[Argument]:
    """The top-level keys as arguments; ``names`` are those that go by another name.

    A key without a value (null) asks for nothing.
    """
    found = (key_argument(document, m, names.get(m.key, m.key)) for m in members(document))
    return [argument for argument in found if argument is not None]


def key_argument(
    document: Document, member: Member, name: str, parent: str = ""
) -> Argument | None:
    """One key as an argument, None where it has no value."""
    value = member.node.value
    if value is None:
        return None
    pointer = join_pointer(parent, member.key)
    return Argument(
        name=name.replace("-", "_"),
        flag=member.key,
        value=text_of(value),
        location=Location(document.source, member.span, pointer),
        value_location=Location(document.source, member.node.span, pointer),
        known=not (isinstance(value, str) and re.search(_INTERPOLATION, value)),
        kind=OriginKind.JOBFILE,
    )


def text_of(value: Any) -> str:
    """A value as it would be typed."""
    if isinstance(value, str):
        return value
    import json

    return json.dumps(value, ensure_ascii=False, default=str)


def filled(name: str, value: str | None, whose: str, at: Location) -> Argument:
    """A value that a framework sets by itself; None where it depends on the run."""
    return Argument(name, name, value, at, at, value is not None, OriginKind.DEFAULT, whose)


def missing(
    defaults: Mapping[str, str | None], given: ScriptArguments
) -> Iterator[tuple[str, str | None]]:
    """Those of a framework's defaults that nobody gave."""
    return ((name, value) for name, value in defaults.items() if given.get(name) is None)


def whole(argument: Argument | None) -> int | None:
    """The value of an argument as an integer, None where it is not known or none."""
    if argument is None or not argument.known or argument.value is None:
        return None
    try:
        return int(argument.value)
    except ValueError:
        return None


def is_on(argument: Argument | None) -> bool:
    """Whether a switch is known to be on."""
    if argument is None or not argument.known:
        return False
    return argument.value is None or argument.value.lower() in ("true", "1", "yes", "t", "y")
