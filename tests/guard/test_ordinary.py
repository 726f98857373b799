"""An ordinary micro-batch is counted on the spot: by the same numbers as where each is looked at.

Seeded runs are made twice, once as they are and once looked at throughout.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from dsguard import guard

torch = pytest.importorskip("torch")
from dsguard.runtime.engines.deepspeed_hooks import DeepSpeedHooks  # noqa: E402
from dsguard.runtime.engines.deepspeed_view import (  # noqa: E402
    BOUNDARY,
    UNSYNCHRONISED,
    DeepSpeedView,
)
from dsguard.runtime.moments import Forward, Moment  # noqa: E402
from dsguard.runtime.watch import Watch  # noqa: E402
from tests.guard.at_random import at_random, state  # noqa: E402
from tests.guard.stub import MICRO_BATCH, StubEngine, train  # noqa: E402

pytestmark = pytest.mark.deepspeed

ACCUMULATION, STEADY, RUNS = 4, 8, 40


class Tripping(StubEngine):
    """Raises, or skips an optimizer step, where that is asked for."""

    trips = ""
    overflows = False

    def forward(self, x: torch.Tensor, *more: Any, mask: Any = None) -> torch.Tensor:
        if self.trips == "forward":
            raise ValueError("a bad sample")
        return super().forward(x)

    def backward(self, loss: torch.Tensor, **_: Any) -> None:
        if self.trips == "backward":
            raise ValueError("no memory")
        super().backward(loss)

    def step(self) -> None:
        if self.trips == "step":
            raise ValueError("no network")
        super().step()
        if self.trips == "after step":
            raise ValueError("no tracker")

    def _take_model_step(self, lr_kwargs: dict[str, Any]) -> None:
        super()._take_model_step(lr_kwargs)
        if self.overflows:
            self.skipped_steps += 1
            self.overflows = False


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


def overflow(engine: Tripping) -> None:
    engine.overflows = True


def resize(engine: Tripping) -> None:
    """What no call of the engine tells."""
    engine.accumulation = ACCUMULATION // 2 if engine.accumulation == ACCUMULATION else ACCUMULATION


def directly(engine: Tripping) -> None:
    engine.backward(engine(batch()))
    engine._take_model_step({})


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


def one_more(engine: Tripping) -> None:
    engine.backward(engine(batch()))
    engine(batch())
    engine.step()


def twice(engine: Tripping) -> None:
    train(engine, 1)
    engine.backward(engine(batch()))
    engine.backward(engine(batch()))
    engine.step()


def around(engine: Tripping) -> None:
    (engine(batch()) / ACCUMULATION).backward()
    engine.step()


def around_twice(engine: Tripping) -> None:
    for _ in range(2):
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
    one_more,
    twice,
    around,
    around_twice,
    again_in_backward,
    lambda engine: engine(batch()),
    lambda engine: engine.backward(engine(batch())),
    lambda engine: engine.step(),
    lambda engine: engine.backward(engine(batch(), batch())) or engine.step(),
    lambda engine: engine.backward(engine(batch(), batch(5))) or engine.step(),
    lambda engine: engine.backward(engine(x=batch())) or engine.step(),
    lambda engine: engine.backward(engine(x=batch(3))) or engine.step(),
    lambda engine: engine.backward(engine(batch(), mask=batch())) or engine.step(),
    lambda engine: engine.backward(engine(batch(), mask=None)) or engine.step(),
    lambda engine: engine.backward(engine(batch(), mask=batch(1))) or engine.step(),
    lambda engine: trip(engine, "forward"),
    lambda engine: trip(engine, "backward"),
    lambda engine: trip(engine, "step"),
    lambda engine: trip(engine, "after step"),
    overflow,
    resize,
    directly,
    lambda engine: engine.load_checkpoint("a folder"),
    lambda engine: engine.zero_grad(),
    lambda engine: with_state(engine, UNSYNCHRONISED, True, lambda: train(engine, 1)),
    lambda engine: with_state(engine, BOUNDARY, True, lambda: train(engine, 1)),
    lambda engine: with_state(engine, BOUNDARY, False, lambda: train(engine, 1)),
)


def run(seed: int) -> tuple[Any, ...]:
    engine = Tripping(ACCUMULATION)
    odd = [functools.partial(act, engine) for act in ODD]
    with guard(engine, on_violation="record") as watched:
        train(engine, STEADY * ACCUMULATION)
        seen = at_random(watched, seed, lambda: train(engine, 1), odd)
        return seen, state(watched), watched.summary(), watched.counts


@pytest.mark.parametrize("seed", range(RUNS))
def test_the_same_as_where_each_is_looked_at(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    look = DeepSpeedHooks._before_forward
    monkeypatch.setattr(
        DeepSpeedHooks, "_before_forward", lambda *args: asked.append(1) or look(*args)
    )
    found, seldom = run(seed), len(asked)
    monkeypatch.setattr(DeepSpeedHooks, "_expect_the_like", lambda hooks, window: None)
    assert run(seed) == found
    assert seldom < len(asked) - seldom


def steady(engine: StubEngine, windows: int = 2 * STEADY) -> None:
    train(engine, windows * ACCUMULATION)


def test_the_first_windows_and_a_sample_of_the_others_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at = set()
    tell = Watch.tell

    def telling(watch: Watch, moment: Moment, **how: Any) -> None:
        if isinstance(moment, Forward):
            looked_at.add(moment.run.windows.optimizer_steps + 1)
        tell(watch, moment, **how)

    monkeypatch.setattr(Watch, "tell", telling)
    engine = StubEngine(ACCUMULATION)
    with guard(engine, on_violation="record") as watched:
        steady(engine, 120)
    assert looked_at == {1, 2, 3, 51, 101}
    assert watched.summary().optimizer_steps == 120


def test_another_accumulation_that_no_call_has_told() -> None:
    engine = StubEngine(ACCUMULATION)
    with guard(engine, on_violation="record") as watched:
        steady(engine)
        engine.accumulation = ACCUMULATION // 2
        train(engine, 1)
        assert watched._tap.run.windows.expected == ACCUMULATION // 2
        train(engine, 1)
        steady(engine)
    assert not watched.findings
    assert watched.summary().windows == {
        ACCUMULATION: 2 * STEADY,
        ACCUMULATION // 2: 1 + 4 * STEADY,
    }


def test_a_window_that_does_not_end() -> None:
    engine = StubEngine(ACCUMULATION)
    with guard(engine, on_violation="record") as watched:
        steady(engine)
        engine._take_model_step = lambda lr_kwargs: None
        train(engine, ACCUMULATION + 1)
        assert watched._tap.run.windows.open == ACCUMULATION + 1


def test_a_boundary_that_is_declared_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeepSpeedView, "needs_boundary_in_backward", lambda view: "a wrong step")
    engine = StubEngine(ACCUMULATION)
    with guard(engine, on_violation="record") as watched:
        steady(engine)
        watched._tap.run.reduced = False
        engine.backward(engine(batch()))
        with_state(engine, BOUNDARY, True, engine.step)
    assert watched.counts["boundary-set-late"] == 1


class Scheduled(StubEngine):
    """Runs a schedule of its own, and steps its optimizer as DeepSpeed does."""

    def _take_model_step(self, lr_kwargs: dict[str, Any]) -> None:
        self.optimizer.step()
        super()._take_model_step(lr_kwargs)


def test_a_script_that_takes_the_model_step_itself() -> None:
    engine = Scheduled(ACCUMULATION)
    with guard(engine, on_violation="record") as watched:
        for _ in range(STEADY):
            for _ in range(ACCUMULATION):
                engine.backward(engine(batch()))
            engine._take_model_step({})
    assert "step-around-engine" not in watched.counts
    assert watched.summary().windows == {ACCUMULATION: STEADY}
