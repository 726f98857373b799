"""Reading an object as the pydantic model of a checked block does.

DeepSpeed validates these blocks with pydantic 2. What does so inside pydantic is pydantic-core,
and a declaration says enough to ask it directly, with the schema that pydantic would give it.
Importing the rest of pydantic and building a model would take several times as long. Only configs
that hold a checked block come here.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from enum import Enum
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

from msgspec import Struct
from packaging.version import Version
from pydantic_core import SchemaValidator, ValidationError

from dsguard.schema.block import (
    After,
    Before,
    Block,
    CheckedBlock,
    Key,
    Limit,
    OutOfRangeError,
    cached,
    keys_of,
)
from dsguard.schema.pydantic1 import PYDANTIC_2_SINCE, reads_like_1
from dsguard.schema.releases import as_of
from dsguard.schema.shape import made

CheckedT = TypeVar("CheckedT", bound=CheckedBlock)
Schema: TypeAlias = "dict[str, Any]"

_PLAIN = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    type(None): "none",
}
_RANGE_ERRORS = {"greater_than", "greater_than_equal", "less_than", "less_than_equal"}
_CHOICE_ERRORS = {"enum", "literal_error"}


class Fault(Struct, frozen=True):
    """A value that is refused: where it stands in the object, and whether its type is good.

    ``place`` may end with names of a union's alternatives, which no value stands under.
    ``sort`` is "range", "choice" for none of the values that are taken, or "type".
    """

    place: tuple[int | str, ...]
    sort: Literal["range", "choice", "type"]


class RefusedError(Exception):
    """An object that the model refuses."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(len(faults))
        self.faults = faults


def read(block: type[CheckedT], given: dict[str, Any]) -> CheckedT:
    """The block that DeepSpeed makes of an object.

    Raises:
        RefusedError: values are of a wrong type or out of range, or keys are unknown.
    """
    try:
        taken: CheckedT = _validator(block).validate_python(given)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        raise RefusedError([Fault(fault["loc"], _sort(fault)) for fault in faults]) from None
    return taken


def _sort(fault: Any) -> Literal["range", "choice", "type"]:
    if fault["type"] in _CHOICE_ERRORS:
        return "choice"
    ours = fault.get("ctx", {}).get("error")
    return (
        "range" if fault["type"] in _RANGE_ERRORS or isinstance(ours, OutOfRangeError) else "type"
    )


@cached
def _validator(block: type[CheckedBlock]) -> SchemaValidator:
    schema: Any = _object(block)
    return SchemaValidator(schema)


def _object(block: type[CheckedBlock]) -> Schema:
    """The schema of a block, which makes an object of its class."""
    release = block.release if block.with_history is not None else None
    fields = {
        name: _field(key, release, block)
        for name, key in keys_of(block).items()
        if release is None or key.history.exists_in(release)
    }
    of_keys = {"type": "typed-dict", "fields": fields, "extra_behavior": "forbid"}
    return _after(partial(made, block), _before(block.arguments, of_keys))


def _field(key: Key, release: Version | None, block: type[CheckedBlock]) -> Schema:
    like_1 = block.release < PYDANTIC_2_SINCE
    annotation, marks = key.annotation(block.release)
    return {
        "type": "typed-dict-field",
        "schema": _value(annotation, marks, release, like_1),
        "required": False,
        "validation_alias": [[spelling] for spelling in key.spellings],
    }


def _value(
    annotation: Any, marks: tuple[Any, ...], release: Version | None, like_1: bool
) -> Schema:
    """The schema of a value; ``release`` as in :class:`~dsguard.schema.shape.Fields`."""
    if get_origin(annotation) is Annotated:
        annotation, *inner = get_args(annotation)
        marks = (*inner, *marks)
    limits: Schema = {mark.sign: mark.number for mark in marks if isinstance(mark, Limit)}
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        schema = _any_of([_value(part, (), release, like_1) for part in arguments])
    elif origin is Literal:
        schema = {"type": "literal", "expected": list(arguments)}
    elif origin is list:
        schema = {"type": "list", "items_schema": _value(arguments[0], (), release, like_1)}
    elif origin is tuple:  # of any number of items
        items = [_value(arguments[0], (), release, like_1)]
        schema = {"type": "tuple", "items_schema": items, "variadic_item_index": 0}
    elif origin is dict:
        keys, values = (_value(part, (), release, like_1) for part in arguments)
        schema = {"type": "dict", "keys_schema": keys, "values_schema": values}
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        schema = _member(annotation)
    elif isinstance(annotation, type) and issubclass(annotation, Block):
        assert issubclass(annotation, CheckedBlock)
        schema = _object(annotation if release is None else as_of(annotation, release))
    elif annotation is Path:  # of what JSON holds, pydantic makes a path of a string only
        schema = _after(Path, {"type": "str"})
    else:
        schema = {"type": _PLAIN.get(annotation, "any"), **limits}
    for mark in marks:
        if isinstance(mark, Before):
            schema = _before(mark.function, schema)
        elif isinstance(mark, After):
            schema = _after(mark.function, schema)
    old = reads_like_1(origin or annotation) if like_1 else None
    return schema if old is None else _before(old, schema)


def _any_of(options: list[Schema]) -> Schema:
    others = [option for option in options if option["type"] != "none"]
    schema = others[0] if len(others) == 1 else {"type": "union", "choices": others}
    return schema if len(others) == len(options) else {"type": "nullable", "schema": schema}


def _member(enumeration: type[Enum]) -> Schema:
    kind = "int" if issubclass(enumeration, int) else "str"
    members = list(enumeration)
    schema = {"type": "enum", "cls": enumeration, "members": members, "sub_type": kind}
    return _after(attrgetter("value"), schema)


def _before(function: Callable[[Any], Any], schema: Schema) -> Schema:
    wrapped = {"type": "no-info", "function": function}
    return {"type": "function-before", "function": wrapped, "schema": schema}


def _after(function: Callable[[Any], Any], schema: Schema) -> Schema:
    wrapped = {"type": "no-info", "function": function}
    return {"type": "function-after", "function": wrapped, "schema": schema}
