"""What the guard says on another release of DeepSpeed: healthy loops, and the main faults."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import deepspeed

from dsguard import guard
from tests.guard.healthy_loops import MICRO_BATCH, config, initialize, matrix, told
from tests.guard.scenarios import batches, train

FAULTS: dict[str, Callable[[int], list[str]]] = {}


def healthy(stage: int) -> dict[str, Any]:
    """A slice of the matrix at a stage."""
    return {
        "version": deepspeed.__version__,
        "outcomes": matrix([stage], ("fp32",), ("own",)),
    }


def faults(stage: int) -> dict[str, Any]:
    """What is told of each fault, by the rule that should find it."""
    found: dict[str, Any] = {}
    for rule, loop in FAULTS.items():
        try:
            found[rule] = loop(stage)
        except Exception:
            found[rule] = [traceback.format_exc()[-600:]]
    return found


def fault(rule: str) -> Callable[[Callable[[Any, Any], None]], None]:
    """A loop on an engine with an accumulation of 4 that this rule should speak of."""

    def enter(loop: Callable[[Any, Any], None]) -> None:
        def run(stage: int) -> list[str]:
            engine, _ = initialize(config(stage, accumulation=4))
            asked = {"gradient_accumulation_steps": 8} if rule == "expectation-differs" else None
            watched = guard(engine, expect=asked)
            try:
                loop(engine, batches(24))
            except Exception:
                if not watched.findings:
                    raise
            watched.close()
            return told(watched)

        FAULTS[rule] = run

    return enter


@fault("expectation-differs")
def _expectation(engine: Any, data: Any) -> None:
    pass


@fault("accumulated-twice")
def _twice(engine: Any, data: Any) -> None:
    for index, (x, y) in enumerate(data):
        engine.backward(engine(x, y))
        if index % 4 == 3:
            engine.step()


@fault("several-backwards")
def _several(engine: Any, data: Any) -> None:
    for index, (x, y) in enumerate(data):
        engine.backward(engine(x, y))
        if index % 3 == 2:
            engine.step()


@fault("loss-divided-twice")
def _divided(engine: Any, data: Any) -> None:
    for x, y in data:
        engine.backward(engine(x, y) / 4)
        engine.step()


@fault("micro-batch-differs")
def _micro(engine: Any, data: Any) -> None:
    for x, y in data:
        engine.backward(engine(x.repeat(2, 1), y.repeat(2, 1)))
        engine.step()


@fault("step-without-backward")
def _no_backward(engine: Any, data: Any) -> None:
    for x, y in data:
        engine(x, y)
        engine.step()


@fault("step-around-engine")
def _around(engine: Any, data: Any) -> None:
    for x, y in data:
        engine.backward(engine(x, y))
        engine.basic_optimizer.step()


@fault("gradients-zeroed")
def _zeroed(engine: Any, data: Any) -> None:
    for x, y in data:
        engine.backward(engine(x, y))
        engine.optimizer.zero_grad()
        engine.step()


@fault("resized-in-window")
def _resized(engine: Any, data: Any) -> None:
    train(engine, 2)
    engine.set_train_batch_size(8 * MICRO_BATCH)


@fault("window-open")
def _open(engine: Any, data: Any) -> None:
    train(engine, 6)


@fault("boundary-never-reached")
def _never(engine: Any, data: Any) -> None:
    engine.set_gradient_accumulation_boundary(False)
    for x, y in data:
        engine.backward(engine(x, y))
        engine.step()


@fault("backward-around-engine")
def _raw(engine: Any, data: Any) -> None:
    for x, y in data:
        engine(x, y).backward()
        engine.step()
