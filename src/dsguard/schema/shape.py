"""What a field of a block takes, read from its declaration when somebody asks for it."""

from __future__ import annotations

import operator
import types
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from msgspec import Struct, field
from packaging.version import Version

from dsguard.model.finding import Consequence
from dsguard.schema.block import Block, Holds, Key, Limit, Takes, cached, keys_of
from dsguard.schema.history import NEWEST_KNOWN, SAME, History
from dsguard.schema.releases import as_of

BlockT = TypeVar("BlockT", bound=Block)

_KEEPS = {"gt": operator.gt, "ge": operator.ge, "lt": operator.lt, "le": operator.le}
_LIMITS = {"gt": "above", "ge": "of at least", "lt": "below", "le": "at most"}


class Shape(Struct):
    """The JSON types and values that a field takes.

    ``kinds`` are names out of boolean, whole, number, string, list, object, null and
    anything. ``choices`` are the only strings or numbers taken, empty where any are.
    ``block`` declares an object, ``blocks`` each value of an object with free names, and ``items``
    the elements of a list. ``bounds`` limit numbers. ``expected`` says everything in words,
    completing "must be ...".
    """

    kinds: set[str] = field(default_factory=set)
    choices: tuple[Any, ...] = ()
    block: type[Block] | None = None
    blocks: type[Block] | None = None
    items: Shape | None = None
    bounds: tuple[Limit, ...] = ()
    takes: Takes | None = None
    expected: str = ""

    def in_bounds(self, value: Any) -> bool:
        """Whether a number is within the limits; anything else has none."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return True
        return all(_KEEPS[bound.sign](value, bound.number) for bound in self.bounds)


class FieldFacts(Struct, frozen=True, eq=False):
    """A field of a block, in the release that the block's class describes, and its history.

    ``name`` is the documented spelling, ``spellings`` all that are read, ``attribute`` the one that
    an object of the block uses. ``wrong`` is the
    consequence of a value of another type where types are not checked.
    """

    name: str
    attribute: str
    spellings: tuple[str, ...]
    shape: Shape
    default: Any
    doc: str
    wrong: Consequence | None
    history: History


class Fields(Mapping[str, FieldFacts]):
    """The fields of a block by every spelling DeepSpeed reads, looked at one by one.

    They are those of one release for a class that :func:`~dsguard.schema.releases.as_of` made,
    and those of all releases for a class as it is written down.
    """

    def __init__(self, block: type[Block]) -> None:
        self._release = block.release if block.with_history is not None else None
        self._keys = {
            spelling: key for key in keys_of(block).values() for spelling in key.spellings
        }
        self._found: dict[Key, FieldFacts] = {}

    def __getitem__(self, spelling: str) -> FieldFacts:
        key = self._keys[spelling]
        found = self._found.get(key)
        if found is None:
            if not self._has(key):
                raise KeyError(spelling)
            found = self._found[key] = _facts(key, self._release)
        return found

    def __iter__(self) -> Iterator[str]:
        return (spelling for spelling, key in self._keys.items() if self._has(key))

    def __len__(self) -> int:
        return sum(map(self._has, self._keys.values()))

    def __contains__(self, spelling: object) -> bool:
        key = self._keys.get(spelling) if isinstance(spelling, str) else None
        return key is not None and self._has(key)

    def _has(self, key: Key) -> bool:
        return self._release is None or key.history.exists_in(self._release)


@cached
def fields_of(block: type[Block]) -> Fields:
    """The fields of a block."""
    return Fields(block)


def made(block: type[BlockT], given: Mapping[str, Any]) -> BlockT:
    """A block with values by attribute; whatever is not given has its default."""
    return block(given, partial(_default, block))


def _default(block: type[Block], attribute: str) -> Any:
    """What an attribute is in a release whose config does not give it, or that has no such key."""
    key = keys_of(block)[attribute]
    default = key.default_in(block.release)
    if default == {}:
        release = block.release if block.with_history is not None else None
        inner = _facts(key, release).shape.block
        return made(inner, {}) if inner is not None else default
    return default


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


def _facts(key: Key, release: Version | None) -> FieldFacts:
    """A field in a release; None stands for the class as it is written down."""
    history, at = key.history, release or NEWEST_KNOWN
    form = history.form(at)
    shape = _shape(*key.annotation(at), release)
    if history.expected and (form is None or form.type is SAME):
        shape.expected = history.expected
    elif shape.takes:
        shape.expected = shape.takes.expected
    return FieldFacts(
        name=key.spellings[0],
        attribute=key.attribute,
        spellings=key.spellings,
        shape=shape,
        default=key.default_in(at),
        doc=key.doc,
        wrong=(form.wrong if form else None) or history.wrong,
        history=history,
    )


def _shape(annotation: Any, marks: Iterable[Any], release: Version | None) -> Shape:
    words = list[str]()
    shape = Shape(bounds=tuple(mark for mark in marks if isinstance(mark, Limit)))
    for option in _options(annotation):
        words.append(_add(shape, option, release))
    for mark in marks:
        if isinstance(mark, Takes):
            shape.takes = mark
        elif isinstance(mark, Holds):
            shape.block = _in_release(mark.block, release)
    shape.expected = _either(words)
    return shape


def _in_release(block: type[Block], release: Version | None) -> type[Block]:
    return block if release is None else as_of(block, release)


def _options(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Annotated:
        return _options(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [o for part in get_args(annotation) for o in _options(part)]
    return [annotation]


def _add(shape: Shape, option: Any, release: Version | None) -> str:
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
        shape.items = _shape(arguments[0], (), release) if arguments else None
        return "a list of strings" if arguments == (str,) else "a list"
    if origin is dict or option is dict:
        shape.kinds.add("object")
        last = (get_args(option) or (Any,))[-1]
        if isinstance(last, type) and issubclass(last, Block):
            shape.blocks = _in_release(last, release)
        return "an object"
    if isinstance(option, type) and issubclass(option, Block):
        shape.kinds.add("object")
        shape.block = _in_release(option, release)
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


def _bounded(noun: str, shape: Shape) -> str:
    words = [f"{_LIMITS[bound.sign]} {bound.number:g}" for bound in shape.bounds]
    return f"{noun} {' and '.join(words)}" if words else noun


def _either(words: list[str]) -> str:
    """Alternatives in words; null comes last."""
    words = sorted(words, key=lambda word: word == "null")
    if any(" or " in word or ", " in word for word in words[:-1]):
        return ", or ".join(words)
    return " or ".join(words)
