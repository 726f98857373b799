import json
import math
from collections import OrderedDict
from enum import Enum
from pathlib import PurePosixPath
from typing import Any

import pytest

from dsguard.render.values import json_value, show_value
from tests.calls import calls


class Letter(Enum):
    A = "a"


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (Letter.A, "a"),
        (True, True),
        (OrderedDict(a=(1, 2)), {"a": [1, 2]}),
        (PurePosixPath("a/b"), "a/b"),
        pytest.param(10**5000, "an integer of 16610 bits", id="huge"),
    ],
)
def test_json_value(value: Any, expected: Any) -> None:
    assert json_value(value) == expected


def test_deep_nesting_is_cut_instead_of_overflowing_the_stack() -> None:
    assert len(json.dumps(json_value(nested(100_000)))) < 100


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "none"),
        (True, "true"),
        (2e-4, "0.0002"),
        (math.nan, "NaN"),
        ("bf16", "bf16"),
        ("8", '"8"'),
        ("true", '"true"'),
        ("none", "none"),
        ("", '""'),
        (" x", '" x"'),
        ({"device": "cpu"}, '{"device": "cpu"}'),
        ("[" * 10_000, "[" * 59 + "…"),
    ],
)
def test_show_value(value: Any, shown: str) -> None:
    assert show_value(value) == shown


def test_a_long_list_is_not_converted_to_show_its_beginning() -> None:
    """Every repeat of a key shows the first value: 500 of them with a long list took minutes."""
    value = {"a": [1] * 100_000}
    assert show_value(value).startswith('{"a": [1, 1, 1')
    assert calls(lambda: show_value(value)) < 1000
