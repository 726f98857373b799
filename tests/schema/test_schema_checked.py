"""What pydantic-core is asked for, against pydantic's own models of the same declarations."""

from __future__ import annotations

import operator
import types
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import annotated_types
import pytest
from packaging.version import Version
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
)

from dsguard.schema.block import After, Before, Block, CheckedBlock, Holds, Limit, keys_of
from dsguard.schema.checked import RefusedError, read
from dsguard.schema.config import Config
from dsguard.schema.history import NEWEST_KNOWN
from dsguard.schema.pydantic1 import PYDANTIC_2_SINCE, reads_like_1
from dsguard.schema.releases import as_of
from dsguard.schema.shape import fields_of
from dsguard.schema.zero import LeafModule, OffloadParam, ZeroOptimization
from tests.schema.configs import ODD_VALUES

RELEASES = ("0.9.0", "0.14.5", "0.15.0", "0.17.6", str(NEWEST_KNOWN))


def checked_blocks(block: type[Block]) -> Iterator[type[CheckedBlock]]:
    for facts in fields_of(block).values():
        inner = facts.shape.block
        if inner is not None:
            yield from checked_blocks(inner)
    if issubclass(block, CheckedBlock) and block.is_checked():
        yield block


def model_of(block: type[CheckedBlock]) -> type[BaseModel]:
    """The block as a pydantic model, as DeepSpeed writes its own."""
    fields: Any = {}
    for name, key in keys_of(block).items():
        if key.history.exists_in(block.release):
            annotation = in_pydantics_terms(block, *key.annotation(block.release))
            fields[name] = (annotation, Field(default=None, alias=key.alias))
    return create_model(
        block.__name__,
        __config__=ConfigDict(
            extra="forbid",
            populate_by_name=True,
            protected_namespaces=(),
            use_enum_values=True,
        ),
        **fields,
    )


def in_pydantics_terms(block: type[CheckedBlock], annotation: Any, marks: tuple[Any, ...]) -> Any:
    if get_origin(annotation) is Annotated:
        annotation, *inner = get_args(annotation)
        marks = (*inner, *marks)
    origin, arguments = get_origin(annotation), get_args(annotation)
    option = origin or annotation
    theirs = [mark_of(mark) for mark in marks if not isinstance(mark, Holds)]
    if block.release < PYDANTIC_2_SINCE and (old := reads_like_1(option)) is not None:
        theirs.append(BeforeValidator(old))
    if origin in (Union, types.UnionType):
        annotation = Union[tuple(in_pydantics_terms(block, part, ()) for part in arguments)]  # noqa: UP007
    elif origin in (list, dict):
        annotation = origin[tuple(in_pydantics_terms(block, part, ()) for part in arguments)]
    elif isinstance(annotation, type) and issubclass(annotation, CheckedBlock):
        inside = as_of(annotation, block.release)
        annotation = model_of(inside)
        theirs.insert(0, BeforeValidator(inside.arguments))
    return operator.getitem(Annotated, (annotation, *theirs)) if theirs else annotation


def mark_of(mark: Any) -> Any:
    if isinstance(mark, Limit):
        return getattr(annotated_types, mark.sign.title())(mark.number)
    return {Before: BeforeValidator, After: AfterValidator}[type(mark)](mark.function)


def ours(block: type[CheckedBlock], given: dict[str, Any]) -> Any:
    try:
        return plain(read(block, given))
    except RefusedError as refused:
        return [fault.place for fault in refused.faults]


def theirs(block: type[CheckedBlock], model: type[BaseModel], given: dict[str, Any]) -> Any:
    try:
        return plain(model.model_validate(block.arguments(given)))
    except ValidationError as error:
        return [fault["loc"] for fault in error.errors()]


def plain(value: Any) -> Any:
    """What was read, in a form that tells 1 from true and from 1.0."""
    if isinstance(value, CheckedBlock):
        return {name: plain(getattr(value, name)) for name in value.written}
    if isinstance(value, BaseModel):
        return {name: plain(getattr(value, name)) for name in value.model_fields_set}
    if isinstance(value, Enum):
        return plain(value.value)
    return repr(str(value) if isinstance(value, Path) else value)


BLOCKS = [
    block
    for release in RELEASES
    for block in dict.fromkeys(checked_blocks(as_of(Config, Version(release))))
]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.__name__}-{block.release}")
def test_every_key_is_read_as_pydantic_reads_it(block: type[CheckedBlock]) -> None:
    model, compared = model_of(block), 0
    for spelling, facts in fields_of(block).items():
        inner = facts.shape.block
        values = list(ODD_VALUES)
        if inner is not None and issubclass(inner, CheckedBlock):
            values += [{name: odd} for name in fields_of(inner) for odd in ODD_VALUES]
            values += [[[name, odd]] for name in [*fields_of(inner), "colour"] for odd in (5, "x")]
        for value in values:
            given = {"strict": True, spelling: value}
            assert ours(block, given) == theirs(block, model, given), given
            compared += 1
    assert compared >= len(ODD_VALUES)


def test_a_value_of_a_good_type_is_told_apart_from_others() -> None:
    zero = as_of(ZeroOptimization, NEWEST_KNOWN)
    with pytest.raises(RefusedError) as refused:
        read(zero, {"colour": 1, "stage": 9, "stage3_prefetch_bucket_size": -1, "overlap_comm": []})
    assert {fault.place: fault.sort for fault in refused.value.faults} == {
        ("colour",): "type",
        ("stage",): "choice",
        ("stage3_prefetch_bucket_size",): "range",
        ("overlap_comm",): "type",
    }


@pytest.mark.parametrize("release", RELEASES)
def test_a_block_stands_for_values_and_defaults(release: str) -> None:
    zero = as_of(ZeroOptimization, Version(release))
    taken = read(zero, {"stage": 3, "offload_param": {"device": "cpu"}})
    assert isinstance(taken, ZeroOptimization)
    assert isinstance(taken.offload_param, OffloadParam)
    assert (taken.stage, taken.offload_param.device, taken.offload_optimizer) == (3, "cpu", None)
    assert taken.offload_param.pin_memory is (release == str(NEWEST_KNOWN))
    assert taken.prefetch_bucket_size == 50_000_000
    assert isinstance(taken.leaf_module, LeafModule)
    assert taken.leaf_module.names == []
    assert set(taken.written) == {"stage", "offload_param"}
