"""Loops to be run under the guard, entered by a decorator and run a module at a time."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import torch

from dsguard import Guard
from tests.guard.healthy_loops import MICRO_BATCH, WIDTH, told

Scenario = Callable[..., Iterator[Guard]]

SCENARIOS: dict[str, tuple[Scenario, tuple[Any, ...]]] = {}


def scenario(*variants: Any) -> Callable[[Scenario], Scenario]:
    """Run this once for every variant; it yields its guards, still attached."""

    def enter(function: Scenario) -> Scenario:
        for variant in variants or ((),):
            arguments = variant if isinstance(variant, tuple) else (variant,)
            name = "-".join([function.__name__, *map(str, arguments)])
            SCENARIOS[name] = (function, arguments)
        return function

    return enter


def run(module: str) -> dict[str, dict[str, Any]]:
    """What the guards of each scenario of a module told, and how it failed if it did."""
    importlib.import_module(module)
    outcomes: dict[str, dict[str, Any]] = {}
    for name, (function, arguments) in SCENARIOS.items():
        if function.__module__ != module:
            continue
        said: list[str] = []
        try:
            for guarded in function(*arguments):
                guarded.close()
                said += told(guarded)
            outcomes[name] = {"told": said, "failed": None}
        except Exception:
            outcomes[name] = {"told": said, "failed": traceback.format_exc()}
    return outcomes


def batches(number: int, seed: int = 0) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Seeded micro-batches."""
    make = torch.Generator().manual_seed(seed)
    for _ in range(number):
        yield (
            torch.randn(MICRO_BATCH, WIDTH, generator=make),
            torch.randn(MICRO_BATCH, 1, generator=make),
        )


def train(engine: Any, number: int) -> None:
    """So many micro-batches, as the documentation has it."""
    for x, y in batches(number):
        engine.backward(engine(x, y))
        engine.step()
