"""A block as one release of DeepSpeed had it."""

from __future__ import annotations

import operator
import types
from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from packaging.version import Version
from pydantic import Field, create_model
from pydantic.fields import FieldInfo

from dsguard.schema.block import Block, CheckedBlock, Holds, UnknownKeys
from dsguard.schema.history import NEWEST_KNOWN, OLDEST_KNOWN, SAME, History
from dsguard.schema.pydantic1 import PYDANTIC_2_SINCE, reads_like_1

BlockT = TypeVar("BlockT", bound=Block)


def as_of(block: type[BlockT], release: Version) -> type[BlockT]:
    """The block with the keys, types and defaults of a release, and so all blocks inside it.

    A release that is older or newer than those known counts as the nearest one that is.
    """
    return _as_of(block, min(max(release, OLDEST_KNOWN), NEWEST_KNOWN))


@cache
def _as_of(block: type[BlockT], release: Version) -> type[BlockT]:
    checks = issubclass(block, CheckedBlock) and release >= block.checked_since
    lax = checks and release < PYDANTIC_2_SINCE
    changed: dict[str, Any] = {}
    gone = []
    for name, info in block.model_fields.items():
        if not history_of(info).exists_in(release):
            gone.append(name)
            continue
        written, default = _declared(info, release)
        annotation = _of_release(written, release, lax)
        if annotation != _annotation(info) or default is not SAME:
            changed[name] = (annotation, _field(info, default))
    if release == NEWEST_KNOWN and not changed and not gone:
        return block
    made = create_model(block.__name__, __base__=block, __doc__=block.__doc__, **changed)
    for name in gone:
        # The model is built on first use, so what is taken out now is never part of it. What it
        # would be without the key can still be asked for.
        setattr(made, name, made.model_fields.pop(name).get_default(call_default_factory=True))
    made.release = release
    made.with_history = block
    if issubclass(block, CheckedBlock) and not checks:
        made.unknown_keys = UnknownKeys.IGNORED
    return made


def history_of(info: FieldInfo) -> History:
    """The history of a field that :func:`~dsguard.schema.block.key` declared."""
    assert isinstance(info.json_schema_extra, History)
    return info.json_schema_extra


def _declared(info: FieldInfo, release: Version) -> tuple[Any, Any]:
    """The annotation and default of a field in a release; the default is SAME where it is."""
    form = history_of(info).form(release)
    if form is None:
        return _annotation(info), SAME
    return (_annotation(info) if form.type is SAME else form.type), form.default


def _annotation(info: FieldInfo) -> Any:
    """The whole annotation of a field, with the marks and limits that pydantic took off."""
    return _annotated(info.annotation, info.metadata)


def _annotated(annotation: Any, marks: list[Any]) -> Any:
    return operator.getitem(Annotated, (annotation, *marks)) if marks else annotation


def _field(info: FieldInfo, default: Any) -> Any:
    arguments: dict[str, Any] = {
        "alias": info.alias,
        "description": info.description,
        "json_schema_extra": info.json_schema_extra,
    }
    if default is not SAME:
        arguments["default"] = default
    elif info.default_factory is not None:
        arguments["default_factory"] = info.default_factory
    else:
        arguments["default"] = info.default
    return Field(**arguments)


def _of_release(annotation: Any, release: Version, lax: bool) -> Any:
    """An annotation with the blocks of a release in it and, if ``lax``, read like pydantic 1."""
    marks: list[Any] = []
    if get_origin(annotation) is Annotated:
        annotation, *marks = get_args(annotation)
        marks = [Holds(as_of(m.block, release)) if isinstance(m, Holds) else m for m in marks]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if lax:  # what comes first is written last
        marks += reads_like_1(origin or annotation)
    if origin in (Union, types.UnionType):
        annotation = Union[tuple(_of_release(option, release, lax) for option in arguments)]  # noqa: UP007
    elif origin in (list, dict):
        annotation = origin[tuple(_of_release(part, release, lax) for part in arguments)]
    elif isinstance(annotation, type) and issubclass(annotation, Block):
        annotation = as_of(annotation, release)
    return _annotated(annotation, marks)
