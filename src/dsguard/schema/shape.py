"""What a field of a block takes, read from its annotation."""

from __future__ import annotations

import types
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic.fields import FieldInfo

from dsguard.model.finding import Consequence
from dsguard.schema.block import Block, Holds, Takes
from dsguard.schema.history import SAME, History
from dsguard.schema.releases import history_of


@dataclass
class Shape:
    """The JSON types and values that a field takes.

    ``kinds`` are names out of boolean, whole, number, string, list, object, null and
    anything. ``choices`` are the only strings or numbers taken, empty where any are.
    ``block`` models an object, ``blocks`` each value of an object with free names, and ``items``
    the elements of a list. ``bounds`` limit numbers. ``expected`` says everything in words,
    completing "must be ...".
    """

    kinds: set[str] = field(default_factory=set)
    choices: tuple[Any, ...] = ()
    block: type[Block] | None = None
    blocks: type[Block] | None = None
    items: Shape | None = None
    bounds: tuple[Ge | Gt | Le | Lt, ...] = ()
    takes: Takes | None = None
    expected: str = ""

    def in_bounds(self, value: Any) -> bool:
        """Whether a number is within the limits; anything else has none."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return True
        return all(_keeps(bound, value) for bound in self.bounds)


@dataclass(frozen=True, eq=False)
class FieldFacts:
    """A field of a block, in the release that the block's class describes, and its history.

    ``name`` is the documented spelling, ``spellings`` all that are read. ``wrong`` is the
    consequence of a value of another type where types are not checked.
    """

    name: str
    spellings: tuple[str, ...]
    shape: Shape
    default: Any
    doc: str
    wrong: Consequence | None
    history: History


@cache
def fields_of(block: type[Block]) -> dict[str, FieldFacts]:
    """The fields of a block by every spelling DeepSpeed reads.

    They are those of one release for a class that :func:`~dsguard.schema.releases.as_of` made,
    and those of all releases for a class as it is written down.
    """
    found: dict[str, FieldFacts] = {}
    for attribute, info in block.model_fields.items():
        facts = _facts(attribute, info, block)
        found.update(dict.fromkeys(facts.spellings, facts))
    return found


def kind_of(value: Any) -> str:
    """The JSON type of a value, by the names that :class:`Shape` uses."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "whole"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "list"


def _facts(attribute: str, info: FieldInfo, block: type[Block]) -> FieldFacts:
    history = history_of(info)
    form = history.form(block.release)
    shape = _shape(info.annotation, info.metadata)
    if history.expected and (form is None or form.type is SAME):
        shape.expected = history.expected
    elif shape.takes:
        shape.expected = shape.takes.expected
    return FieldFacts(
        name=info.alias or attribute,
        spellings=(info.alias, attribute) if info.alias else (attribute,),
        shape=shape,
        default={} if info.default_factory else info.default,
        doc=info.description or "",
        wrong=(form.wrong if form else None) or history.wrong,
        history=history,
    )


def _shape(annotation: Any, metadata: Iterable[Any] = ()) -> Shape:
    words = list[str]()
    shape = Shape(bounds=tuple(m for m in metadata if isinstance(m, Ge | Gt | Le | Lt)))
    for option in _options(annotation):
        words.append(_add(shape, option))
    for mark in metadata:
        if isinstance(mark, Takes):
            shape.takes = mark
        elif isinstance(mark, Holds):
            shape.block = mark.block
    shape.expected = _either(words)
    return shape


def _options(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Annotated:
        return _options(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [o for part in get_args(annotation) for o in _options(part)]
    return [annotation]


def _add(shape: Shape, option: Any) -> str:
    """Add one alternative of an annotation to a shape and return it in words."""
    origin = get_origin(option)
    if origin is Literal or (isinstance(option, type) and issubclass(option, Enum)):
        choices = get_args(option) if origin is Literal else tuple(m.value for m in option)
        shape.choices += choices
        shape.kinds |= {kind_of(choice) for choice in choices}
        names = [f'"{c}"' if isinstance(c, str) else str(c) for c in choices]
        return names[0] if len(names) == 1 else "one of " + ", ".join(names)
    if origin is list or option is list or option is tuple:
        shape.kinds.add("list")
        arguments = get_args(option)
        shape.items = _shape(arguments[0]) if arguments else None
        return "a list of strings" if arguments == (str,) else "a list"
    if origin is dict or option is dict:
        shape.kinds.add("object")
        last = (get_args(option) or (Any,))[-1]
        if isinstance(last, type) and issubclass(last, Block):
            shape.blocks = last
        return "an object"
    if isinstance(option, type) and issubclass(option, Block):
        shape.kinds.add("object")
        shape.block = option
        return "an object"
    kind, words = {
        bool: ("boolean", "true or false"),
        int: ("whole", _bounded("a whole number", shape)),
        float: ("number", _bounded("a number", shape)),
        str: ("string", "a string"),
        Path: ("string", "a path"),
        type(None): ("null", "null"),
    }.get(option, ("anything", "any value"))
    shape.kinds.add(kind)
    return words


def _keeps(bound: Any, value: float) -> bool:
    if isinstance(bound, Ge):
        return bool(value >= bound.ge)  # type: ignore[operator]
    if isinstance(bound, Gt):
        return bool(value > bound.gt)  # type: ignore[operator]
    if isinstance(bound, Le):
        return bool(value <= bound.le)  # type: ignore[operator]
    return bool(value < bound.lt)


def _bounded(noun: str, shape: Shape) -> str:
    words = []
    for bound in shape.bounds:
        if isinstance(bound, Ge):
            words.append(f"of at least {bound.ge:g}")
        elif isinstance(bound, Gt):
            words.append(f"above {bound.gt:g}")
        elif isinstance(bound, Le):
            words.append(f"at most {bound.le:g}")
        else:
            words.append(f"below {bound.lt:g}")
    return f"{noun} {' and '.join(words)}" if words else noun


def _either(words: list[str]) -> str:
    """Alternatives in words; null comes last."""
    words = sorted(words, key=lambda word: word == "null")
    if any(" or " in word or ", " in word for word in words[:-1]):
        return ", or ".join(words)
    return " or ".join(words)
