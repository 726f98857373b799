"""An ordinary micro-batch is counted on the spot: by the same numbers as where each is looked at.

Seeded runs are made twice, once as they are and once looked at throughout.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from dsguard import Guard, guard

torch = pytest.importorskip("torch")
from dsguard.runtime.engines.deepspeed_hooks import DeepSpeedHooks  # noqa: E402
from dsguard.runtime.engines.deepspeed_view import (  # noqa: E402
    BOUNDARY,
    UNSYNCHRONISED,
    DeepSpeedView,
)
from dsguard.runtime.run import Boundary  # noqa: E402
from tests.guard.at_random import at_each_place, at_random, state  # noqa: E402
from tests.guard.stub import MICRO_BATCH, StubEngine, train  # noqa: E402

pytestmark = pytest.mark.deepspeed

ACCUMULATION, STEADY, SEEDS = 4, 8, 15


class Tripping(StubEngine):
    """Raises, or skips an optimizer step, where that is asked for."""

    trips = ""
    overflows = False
    boundaries = "counted"
    """By the engine; or ``declared``, with ``step()`` in each micro-batch or ``at the last``."""
    done = 0
    """Micro-batches of the window, where it is the script that counts them."""

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


def micro_batch(engine: Tripping) -> None:
    if engine.boundaries == "counted":
        train(engine, 1)
        return
    loss = engine(batch())
    engine.done = engine.done % ACCUMULATION + 1
    last = engine.done == ACCUMULATION
    engine.__dict__[BOUNDARY] = last
    engine.backward(loss)
    if last or engine.boundaries == "declared":
        engine.step()


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


def too_early(engine: Tripping) -> None:
    engine.done = ACCUMULATION - 1


def too_late(engine: Tripping) -> None:
    engine.done = 0


def declared_afterwards(engine: Tripping) -> None:
    engine.backward(engine(batch()))
    with_state(engine, BOUNDARY, True, engine.step)


def declared_no_more(engine: Tripping) -> None:
    engine.__dict__.pop(BOUNDARY, None)


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
    lambda engine: engine.backward(engine(batch(), mask=torch.tensor(3))) or engine.step(),
    lambda engine: trip(engine, "forward"),
    lambda engine: trip(engine, "backward"),
    lambda engine: trip(engine, "step"),
    lambda engine: trip(engine, "after step"),
    overflow,
    resize,
    directly,
    too_early,
    too_late,
    declared_afterwards,
    declared_no_more,
    lambda engine: engine.load_checkpoint("a folder"),
    lambda engine: engine.zero_grad(),
    lambda engine: with_state(engine, UNSYNCHRONISED, True, lambda: train(engine, 1)),
    lambda engine: with_state(engine, BOUNDARY, True, lambda: train(engine, 1)),
    lambda engine: with_state(engine, BOUNDARY, False, lambda: train(engine, 1)),
)


MODES = pytest.mark.parametrize("boundaries", ["counted", "declared", "at the last"])


def run(act: Callable[[Tripping, Guard], Any], boundaries: str) -> tuple[Any, ...]:
    """What ``act`` has seen of a run that has gone on for a while, and what is counted at last."""
    engine = Tripping(ACCUMULATION)
    engine.boundaries = boundaries
    with guard(engine, on_violation="record") as watched:
        steady(engine, STEADY)
        seen = act(engine, watched)
        return seen, state(watched), watched.summary(), watched.counts


@pytest.fixture
def same_either_way(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Asserts that it is the same where each micro-batch is looked at."""
    monkeypatch.setattr(DeepSpeedView, "needs_boundary_in_backward", lambda view: "a wrong step")

    def compare(act: Callable[[Tripping, Guard], Any], boundaries: str) -> None:
        with monkeypatch.context() as looking:
            looking.setattr(DeepSpeedHooks, "_expect_the_like", lambda *_: None)
            found = run(act, boundaries)
        assert run(act, boundaries) == found

    return compare


@pytest.mark.parametrize("odd", ODD)
@MODES
def test_anything_at_any_place_of_a_window(
    odd: Callable[[Tripping], Any], boundaries: str, same_either_way: Callable[..., None]
) -> None:
    def act(engine: Tripping, watched: Guard) -> Any:
        one, then = functools.partial(micro_batch, engine), functools.partial(odd, engine)
        return at_each_place(watched, ACCUMULATION, one, then)

    same_either_way(act, boundaries)


@pytest.mark.parametrize("seed", range(SEEDS))
@MODES
def test_anything_after_anything(
    seed: int, boundaries: str, same_either_way: Callable[..., None]
) -> None:
    def act(engine: Tripping, watched: Guard) -> Any:
        odd = [functools.partial(act, engine) for act in ODD]
        return at_random(watched, seed, lambda: micro_batch(engine), odd)

    same_either_way(act, boundaries)


def steady(engine: Tripping, windows: int = 2 * STEADY) -> None:
    for _ in range(windows * ACCUMULATION):
        micro_batch(engine)


def looked_at(
    engine: Tripping, one: Callable[[Tripping], Any], monkeypatch: pytest.MonkeyPatch
) -> set[int]:
    """The windows out of 120 of which a forward was looked at."""
    seen = set()
    look = DeepSpeedHooks._before_forward

    def looking(hooks: DeepSpeedHooks, *call: Any) -> tuple[bool, bool]:
        seen.add(hooks._ordinary.snapshot().optimizer_steps + 1)
        return look(hooks, *call)

    monkeypatch.setattr(DeepSpeedHooks, "_before_forward", looking)
    with guard(engine, on_violation="record") as watched:
        for _ in range(120 * ACCUMULATION):
            one(engine)
    assert watched.summary().optimizer_steps == 120
    return seen


@MODES
def test_the_first_windows_and_a_sample_of_the_others_are_looked_at(
    boundaries: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Tripping(ACCUMULATION)
    engine.boundaries = boundaries
    assert looked_at(engine, micro_batch, monkeypatch) == {1, 2, 3, 51, 101}


@pytest.mark.parametrize("mask", [None, False, torch.tensor(3)])
def test_what_may_come_with_a_batch(mask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def one(engine: Tripping) -> None:
        engine.backward(engine(x=batch(), mask=mask))
        engine.step()

    assert looked_at(Tripping(ACCUMULATION), one, monkeypatch) == {1, 2, 3, 51, 101}


@pytest.mark.parametrize("packed", [False, True])
def test_one_row_by_keyword(packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which may be several sequences, where something says how long each is."""
    rows = {"input_ids": batch(1)} | ({"position_ids": batch(1)} if packed else {})

    class OneRow(Tripping):
        def forward(self, **rows: torch.Tensor) -> torch.Tensor:
            return super().forward(rows["input_ids"])

        def train_micro_batch_size_per_gpu(self) -> int:
            return 1

        def train_batch_size(self) -> int:
            return ACCUMULATION

    def one(engine: Tripping) -> None:
        engine.backward(engine(**rows))
        engine.step()

    looked = looked_at(OneRow(ACCUMULATION), one, monkeypatch)
    assert looked == (set(range(1, 121)) if packed else {1, 2, 3, 51, 101})


def test_another_accumulation_that_no_call_has_told() -> None:
    engine = Tripping(ACCUMULATION)
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


@MODES
def test_a_window_that_does_not_end(boundaries: str) -> None:
    engine = Tripping(ACCUMULATION)
    engine.boundaries = boundaries
    with guard(engine, on_violation="record") as watched:
        steady(engine)
        engine._take_model_step = lambda lr_kwargs: None
        for _ in range(ACCUMULATION):
            micro_batch(engine)
        engine.backward(engine(batch()))
        windows = watched._tap.run.windows
        assert (windows.open, windows.since_step) == (ACCUMULATION + 1, 1)


def test_a_fault_that_begins_later() -> None:
    engine = Tripping(ACCUMULATION)
    with guard(engine, on_violation="record") as watched:
        steady(engine)
        twice(engine)
    assert watched.counts["several-backwards"] == 1


@pytest.mark.parametrize(
    ("first", "then", "who"),
    [("counted", "at the last", Boundary.MANUAL), ("declared", "counted", Boundary.ENGINE)],
)
def test_a_script_that_changes_who_counts(first: str, then: str, who: Boundary) -> None:
    engine = Tripping(ACCUMULATION)
    engine.boundaries = first
    with guard(engine, on_violation="record") as watched:
        steady(engine)
        declared_no_more(engine)
        engine.boundaries = then
        for _ in range(ACCUMULATION):
            micro_batch(engine)
        assert watched._tap.run.boundary is who


@MODES
def test_a_boundary_that_is_declared_too_late(
    boundaries: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DeepSpeedView, "needs_boundary_in_backward", lambda view: "a wrong step")
    engine = Tripping(ACCUMULATION)
    engine.boundaries = boundaries
    with guard(engine, on_violation="record") as watched:
        steady(engine)
        if boundaries == "counted":
            watched._tap.run.reduced = False
        else:
            engine.__dict__[BOUNDARY] = False
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
