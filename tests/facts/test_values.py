"""Single values of a config as DeepSpeed reads them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from dsguard.facts.values import as_switch

WORDS = ("1", "on", "t", "true", "y", "yes", "0", "f", "false", "n", "no", "off")
VALUES = [
    *(True, False, 0, 1, 2, -1, 10**30, 0.0, 1.0, -0.0, 0.5, float("nan"), float("inf")),
    *(None, "", " true", "auto", "2", "enabled", [], [1], {}, {"enabled": True}),
    *WORDS,
    *(word.upper() for word in WORDS),
    *(word.title() for word in WORDS),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_switch_is_what_pydantic_makes_of_it(value: Any) -> None:
    """DeepSpeed's blocks are pydantic models."""
    expected: bool | None
    try:
        expected = TypeAdapter(bool).validate_python(value)
    except ValidationError:
        expected = None
    assert as_switch(value) is expected
