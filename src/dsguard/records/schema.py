"""The JSON Schemas of a record's lines and of the report on a run, made from their classes."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from dsguard.records.reading import LINES
from dsguard.records.report import Overview

OVERVIEW: TypeAdapter[Overview] = TypeAdapter(Overview)


def record_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of any line of a record."""
    return published_schema(LINES, "a line of a dsguard record")


def overview_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of ``dsguard report --output-format json``."""
    return published_schema(OVERVIEW, "dsguard report on a recorded run")


def published_schema(adapter: TypeAdapter[Any], title: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of what an adapter writes."""
    schema = adapter.json_schema(mode="serialization", schema_generator=_SchemaGenerator)
    for part in (schema, *schema.get("$defs", {}).values()):
        if "properties" in part:
            # What has a default is written all the same.
            part["required"] = list(part["properties"])
        for field in part.get("properties", {}).values():
            field.pop("default", None)
            if "description" in field:
                field["description"] = " ".join(field["description"].split())
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema, "title": title}


class _SchemaGenerator(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        """A title made from the name of a key would say nothing."""
        return False
