"""Keys that stand apart: no combination of other keys asks for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from dsguard.schema import validate as validating
from dsguard.schema.problem import ProblemKind
from dsguard.schema.sniff import BLOCKS, SCALARS
from dsguard.schema.validate import validate
from dsguard.schema.whole import STANDS_APART, Whole

FIXTURES = Path(__file__).parents[2] / "fixtures" / "rules"
TOGETHER = (
    ProblemKind.REFUSED_COMBINATION,
    ProblemKind.FAILING_COMBINATION,
    ProblemKind.UNUSED_SETTING,
)
TARGETS = ("0.14.0", "0.16.0", "0.18.6", "0.19.5", "0.19.7", "0.19.8")
NAMED_TOGETHER = {"flops_profiler", "wall_clock_breakdown"}
"""The two of them that one problem names both."""


def configs() -> Iterator[dict[str, Any]]:
    for kind in TOGETHER:
        for path in sorted(FIXTURES.glob(f"{kind.value}/*/*.json")):
            value = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(value, dict):
                yield value


class Asked(dict[str, Any]):
    """A dict that notes which of its keys are asked for."""

    def __init__(self, held: dict[str, Any], asked: set[str]) -> None:
        super().__init__(held)
        self._asked = asked

    def __getitem__(self, key: str) -> Any:
        self._asked.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._asked.add(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self._asked.add(str(key))
        return super().__contains__(key)


def test_no_combination_asks_for_them() -> None:
    asked = set[str]()

    def noting(value: dict[str, Any], blocks: Any, target: Version) -> Whole:
        return Whole(Asked(value, asked), Asked(blocks, asked), target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validating, "Whole", noting)
        for value in configs():
            for target in TARGETS:
                validate(value, Version(target))
    assert {"zero_optimization", "fp16", "bf16", "optimizer", "scheduler", "compile"} <= asked
    assert asked & STANDS_APART == NAMED_TOGETHER


def test_they_are_keys_of_deepspeed() -> None:
    assert STANDS_APART <= BLOCKS | SCALARS


@pytest.mark.parametrize("key", sorted(STANDS_APART))
def test_the_others_stay_what_they_are(key: str) -> None:
    def others(value: dict[str, Any]) -> list[tuple[Any, ...]]:
        return [
            (one.kind, one.pointer, one.other, one.message)
            for one in validate(value, Version("0.19.7"))
            if one.kind in TOGETHER
            and not any(f"/{key}" in (at or "") for at in (one.pointer, one.other))
        ]

    for value in configs():
        without = {name: held for name, held in value.items() if name != key}
        batch_is_elastic = "elasticity" in value and key.endswith(("batch_size", "_gpu", "_steps"))
        if batch_is_elastic:
            continue  # the problem names the first of them
        expected = others(without)
        for held in ({}, {"enabled": True}, 1, True, None):
            assert others({**without, key: held}) == expected
