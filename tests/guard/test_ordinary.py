"""An ordinary micro-batch is counted on the spot: by the same numbers as where each is looked at.

Seeded runs in which anything may follow anything, once as they are and once looked at throughout.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from dsguard import guard

torch = pytest.importorskip("torch")
from dsguard.runtime.engines.deepspeed_hooks import DeepSpeedHooks  # noqa: E402
from dsguard.runtime.engines.deepspeed_view import BOUNDARY, UNSYNCHRONISED  # noqa: E402
from tests.guard.stub import MICRO_BATCH, StubEngine, train  # noqa: E402

pytestmark = pytest.mark.deepspeed

ACCUMULATION, STEADY, EVENTS, RUNS = 4, 8, 120, 40


class Tripping(StubEngine):
    """Its forward or backward pass raises where that is asked for."""

    trips = ""

    def forward(self, x: torch.Tensor, *more: Any) -> torch.Tensor:
        if self.trips == "forward":
            raise ValueError("a bad sample")
        return super().forward(x)

    def backward(self, loss: torch.Tensor, **_: Any) -> None:
        if self.trips == "backward":
            raise ValueError("no memory")
        super().backward(loss)


def batch(samples: int = MICRO_BATCH) -> torch.Tensor:
    return torch.ones(samples, 2)


def with_state(engine: Tripping, key: str, value: object, act: Callable[[], None]) -> None:
    engine.__dict__[key] = value
    act()
    engine.__dict__.pop(key)


def trip(engine: Tripping, at: str) -> None:
    engine.trips = at
    with suppress(ValueError):
        train(engine, 1)
    engine.trips = ""


def without_gradient(engine: Tripping) -> None:
    with torch.no_grad():
        engine(batch())


def evaluate(engine: Tripping) -> None:
    engine.module.eval()
    engine(batch())
    engine.module.train()


def another_size(engine: Tripping) -> None:
    engine.backward(engine(batch(3)))
    engine.step()


def several(engine: Tripping) -> None:
    engine.backward(engine(batch()) + engine(batch()))
    engine.step()


def twice(engine: Tripping) -> None:
    train(engine, 1)
    engine.backward(engine(batch()))
    engine.backward(engine(batch()))
    engine.step()


def around(engine: Tripping) -> None:
    (engine(batch()) / ACCUMULATION).backward()
    engine.step()


def again_in_backward(engine: Tripping) -> None:
    loss = torch.utils.checkpoint.checkpoint(engine, batch().requires_grad_(), use_reentrant=False)
    engine.backward(loss)
    engine.step()


ODD: tuple[Callable[[Tripping], Any], ...] = (
    without_gradient,
    evaluate,
    another_size,
    several,
    twice,
    around,
    again_in_backward,
    lambda engine: engine(batch()),
    lambda engine: engine.backward(engine(batch())),
    lambda engine: engine.step(),
    lambda engine: engine.backward(engine(batch(), batch())) or engine.step(),
    lambda engine: engine.backward(engine(batch(), batch(5))) or engine.step(),
    lambda engine: engine.backward(engine(x=batch())) or engine.step(),
    lambda engine: trip(engine, "forward"),
    lambda engine: trip(engine, "backward"),
    lambda engine: engine.zero_grad(),
    lambda engine: with_state(engine, UNSYNCHRONISED, True, lambda: train(engine, 1)),
    lambda engine: with_state(engine, BOUNDARY, True, lambda: train(engine, 1)),
    lambda engine: with_state(engine, BOUNDARY, False, lambda: train(engine, 1)),
)


def counted(seed: int) -> tuple[Any, ...]:
    """What the guard has counted and found over one run."""
    chance = random.Random(seed)
    engine = Tripping(ACCUMULATION)
    with guard(engine, on_violation="record") as watched:
        train(engine, STEADY * ACCUMULATION)
        for _ in range(EVENTS):
            if chance.random() < 0.85:
                train(engine, 1)
            else:
                chance.choice(ODD)(engine)
        summary = watched.summary()
        state = watched._tap.run.windows
        kept = {name: getattr(state, name) for name in state.__slots__}
    kept["sizes"], kept["samples"] = dict(state.sizes), dict(state.samples)
    return summary, kept, watched.counts


@pytest.mark.parametrize("seed", range(RUNS))
def test_the_same_as_where_each_is_looked_at(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    look = DeepSpeedHooks._before_forward
    monkeypatch.setattr(
        DeepSpeedHooks, "_before_forward", lambda *args: asked.append(1) or look(*args)
    )
    found, seldom = counted(seed), len(asked)
    never = property(lambda hooks: (), lambda hooks, value: None)
    monkeypatch.setattr(DeepSpeedHooks, "_ordinary", never, raising=False)
    assert counted(seed) == found
    assert seldom < len(asked) - seldom
