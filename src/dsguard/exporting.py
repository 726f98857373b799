"""The config of a DeepSpeed release as a JSON Schema, for editors.

Draft-07, because that is what editors and the public schema catalogue read. It says what
``dsguard check`` says about keys, types and ranges, except that texts which DeepSpeed would
convert (``"500"`` for a number) count as wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from packaging.version import Version

from dsguard.frontends.detect import some_trainer_fills
from dsguard.schema.block import Block, UnknownKeys
from dsguard.schema.config import Config
from dsguard.schema.releases import as_of
from dsguard.schema.shape import FieldFacts, Shape, fields_of

if TYPE_CHECKING:
    from packaging.version import Version

_REMARKS = "^(_|#|//|\\$)"
"""Names that people give to remarks; DeepSpeed's tolerant blocks ignore them."""

_TYPES = {
    "boolean": "boolean",
    "whole": "integer",
    "number": "number",
    "string": "string",
    "list": "array",
    "object": "object",
    "null": "null",
}

_BOUNDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
}


def json_schema(release: Version) -> dict[str, Any]:
    """The JSON Schema of ds_config.json for a release."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"DeepSpeed {release} config",
        "description": "The file that is given as --deepspeed_config or --deepspeed.",
        **_block(as_of(Config, release), ""),
    }


def _block(block: type[Block], prefix: str) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for spelling, facts in fields_of(block).items():
        properties[spelling] = _field(facts, prefix + facts.name)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if block.unknown_keys is not UnknownKeys.FREE:
        schema["additionalProperties"] = False
        if block.unknown_keys is UnknownKeys.IGNORED:
            schema["patternProperties"] = {_REMARKS: True}
    return schema


def _field(facts: FieldFacts, dotted: str) -> dict[str, Any]:
    history = facts.history
    notes = [facts.doc]
    if history.deprecated is not None:
        use = f"; use {history.replaced_by}" if history.replaced_by else ""
        notes.append(f"Deprecated{use}.")
    schema: dict[str, Any] = {"description": " ".join(note for note in notes if note)}
    if _is_json(facts.default):
        schema["default"] = facts.default
    options = _options(facts.shape, dotted)
    if some_trainer_fills(dotted) and options:
        options.append({"const": "auto"})
    if len(options) == 1:
        schema.update(options[0])
    elif options:
        schema["anyOf"] = options
    return schema


def _options(shape: Shape, dotted: str) -> list[dict[str, Any]]:
    """The alternatives of a value; empty where anything goes."""
    if "anything" in shape.kinds or not shape.kinds | {bool(shape.block)}:
        return []
    options: list[dict[str, Any]] = []
    if shape.block is not None:
        options.append(_block(shape.block, f"{dotted}."))
    elif shape.blocks is not None:
        inner = _block(shape.blocks, f"{dotted}.*.")
        options.append({"type": "object", "additionalProperties": inner})
    if shape.choices:
        options.append({"enum": list(shape.choices)})
    taken = {"object"} if options and not shape.choices else set()
    if shape.choices:
        taken |= {"string", "whole", "number"}
    for kind in sorted(shape.kinds - taken):
        option: dict[str, Any] = {"type": _TYPES[kind]}
        if kind in ("whole", "number"):
            option |= {_BOUNDS[bound.sign]: bound.number for bound in shape.bounds}
        if kind == "list" and shape.items is not None:
            inside = _options(shape.items, dotted)
            if inside:
                option["items"] = inside[0] if len(inside) == 1 else {"anyOf": inside}
        options.append(option)
    return options


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    if isinstance(value, list):
        return all(_is_json(item) for item in value)
    return value is None or isinstance(value, (bool, int, float, str))
