"""A script that catches an exception and goes on, and one that fails where the guard speaks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from dsguard import Guard, guard
from dsguard.runtime.reporting import LOGGER

torch = pytest.importorskip("torch")
from tests.guard.stub import MICRO_BATCH, StubEngine, train  # noqa: E402

pytestmark = pytest.mark.deepspeed


class PlantedError(Exception):
    """What a loop catches."""


class _Raises(torch.autograd.Function):
    """A backward pass that ends in an exception."""

    @staticmethod
    def forward(ctx: Any, loss: Any) -> Any:
        return loss.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise PlantedError


class Loop:
    """An engine, its guard and its records."""

    def __init__(self, **arguments: Any) -> None:
        self.engine = StubEngine()
        self.records: list[dict[str, Any]] = []
        arguments.setdefault("on_violation", "raise")
        self.guard: Guard = guard(self.engine, record=self.records.append, **arguments)

    def forward(self, size: int = MICRO_BATCH) -> Any:
        return self.engine(torch.ones(size, 2))

    def train(self, micro_batches: int) -> None:
        train(self.engine, micro_batches)

    def counted(self) -> list[tuple[int, int | None]]:
        """Micro-batches and samples of each step; nothing was found."""
        self.guard.close()
        assert self.guard.findings == ()
        return [(record["micro_batches"], record["samples"]) for record in self.records]


# What is judged of a run with exceptions


@pytest.mark.parametrize("at", [1, 4, 6])
def test_a_backward_pass_that_raises_is_none(at: int) -> None:
    loop = Loop()
    for index in range(13):
        loss = loop.forward()
        try:
            loop.engine.backward(_Raises.apply(loss) if index == at else loss)
        except PlantedError:
            continue
        loop.engine.step()
    assert loop.guard.summary().micro_batches == 12
    assert loop.counted() == [(4, 8)] * 3


def test_a_backward_pass_that_is_tried_again() -> None:
    loop = Loop()
    for _ in range(8):
        loss = loop.forward()
        with pytest.raises(PlantedError):
            loop.engine.backward(_Raises.apply(loss))
        loop.engine.backward(loss)
        loop.engine.step()
    assert loop.counted() == [(4, 8)] * 2


def test_a_step_after_a_backward_pass_that_raised() -> None:
    loop = Loop()
    loop.train(4)
    for index in range(8):
        loss = loop.forward()
        with suppress(PlantedError):
            loop.engine.backward(_Raises.apply(loss) if index == 1 else loss)
        loop.engine.step()
    assert loop.counted() == [(4, 8), (3, 6), (4, 8)]


@pytest.mark.parametrize("window_closed", [False, True])
@pytest.mark.parametrize("at", [1, 3, 5, 7])
def test_a_step_that_raises(at: int, window_closed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop()
    step, count = StubEngine.step, 0

    def raising(engine: StubEngine) -> None:
        nonlocal count
        count += 1
        if count == at + 1:
            if window_closed:
                step(engine)
                engine.micro_steps -= 1
            raise PlantedError
        step(engine)

    loop.guard.close()
    monkeypatch.setattr(StubEngine, "step", raising)
    loop.guard = guard(loop.engine, on_violation="raise", record=loop.records.append)
    for _ in range(17):
        with suppress(PlantedError):
            loop.train(1)
    assert len(loop.counted()) == loop.engine.global_steps


def test_an_interruption_leaves_no_window_open() -> None:
    loop = Loop()
    loop.train(1)
    loss = loop.forward()
    with pytest.raises(PlantedError):
        loop.engine.backward(_Raises.apply(loss))
    assert loop.counted() == []


def test_what_comes_after_the_interrupted_window_is_judged() -> None:
    loop = Loop(on_violation="record")
    with pytest.raises(PlantedError):
        loop.engine.backward(_Raises.apply(loop.forward()))
    loop.train(4)
    for _ in range(2):
        loop.engine.backward(loop.forward())
    loop.engine.step()
    assert [found.rule for found in loop.guard.findings] == ["several-backwards"]


@pytest.mark.parametrize("after", [0, 3])
def test_a_checkpoint_ends_what_an_exception_has_interrupted(after: int) -> None:
    loop = Loop(on_violation="record")
    loop.train(4)
    with pytest.raises(PlantedError):
        loop.engine.backward(_Raises.apply(loop.forward()))
    loop.engine.load_checkpoint("")
    loop.train(after)
    loop.guard.close()
    assert [found.rule for found in loop.guard.findings] == ["window-open"] * bool(after)


def test_a_loop_without_deepspeed_whose_step_raises() -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    failing = False

    def step(*_: Any) -> None:
        if failing:
            raise PlantedError

    asked = {"gradient_accumulation_steps": 2, "micro_batch_size": MICRO_BATCH}
    watched = guard(model, optimizer=optimizer, expect=asked, on_violation="raise")
    optimizer.register_step_pre_hook(step)
    for window in range(6):
        failing = window == 2
        for _ in range(3 if window == 3 else 2):
            model(torch.ones(MICRO_BATCH, 2)).sum().backward()
        with suppress(PlantedError):
            optimizer.step()
            optimizer.zero_grad()
    watched.close()
    assert watched.findings == ()


# Samples of the micro-batches that were trained on


def test_a_forward_that_raises_has_no_samples() -> None:
    loop = Loop()
    loop.train(1)
    with pytest.raises(TypeError):
        loop.engine(torch.ones(MICRO_BATCH, 2), "unknown")
    loop.train(3)
    assert loop.counted() == [(4, 8)]


@pytest.mark.parametrize("at", [0, 1, 4])
def test_a_loss_that_is_left_out_makes_the_samples_unknown_at_most(at: int) -> None:
    loop = Loop()
    for index in range(13):
        loss = loop.forward()
        if index == at:
            continue
        loop.engine.backward(loss)
        loop.engine.step()
    expected = [(4, 8)] * 3
    expected[at // 4] = (4, None)
    assert loop.counted() == expected


def test_a_loss_of_several_forwards() -> None:
    loop = Loop(checks=["-micro-batch-differs"])
    for _ in range(12):
        loop.engine.backward(loop.forward() + loop.forward())
        loop.engine.step()
    assert loop.counted() == [(4, None), (4, 16), (4, 16)], "one may have been left out at first"


def test_a_forward_ahead_of_the_step() -> None:
    loop = Loop()
    loss = loop.forward()
    for _ in range(8):
        loop.engine.backward(loss)
        loss = loop.forward()
        loop.engine.step()
    assert loop.counted() == [(4, 8)] * 2


# Where the guard speaks


class _Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise PlantedError


def _filter(record: logging.LogRecord) -> bool:
    raise PlantedError


@contextmanager
def handler(made: logging.Handler) -> Iterator[None]:
    LOGGER.addHandler(made)
    try:
        yield
    finally:
        LOGGER.removeHandler(made)


@contextmanager
def filtered() -> Iterator[None]:
    LOGGER.addFilter(_filter)
    try:
        yield
    finally:
        LOGGER.removeFilter(_filter)


@contextmanager
def closed_stream(tmp_path: Any) -> Iterator[None]:
    stream = (tmp_path / "log").open("w")
    stream.close()
    with handler(logging.StreamHandler(stream)), pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stderr", stream)  # where logging tells of a handler that fails
        yield


@pytest.mark.parametrize("how", ["handler", "filter", "closed"])
def test_a_finding_that_cannot_be_logged_is_found(how: str, tmp_path: Any) -> None:
    ways: dict[str, Callable[[], Any]] = {
        "handler": lambda: handler(_Handler()),
        "filter": filtered,
        "closed": lambda: closed_stream(tmp_path),
    }
    with ways[how]():
        engine = StubEngine()
        watched = guard(engine, expect={"gradient_accumulation_steps": 8})
        for _ in range(4):
            engine.backward(engine(torch.ones(MICRO_BATCH, 2)))
        engine.step()
        train(engine, 3)
        watched.close()
    assert {"expectation-differs", "accumulated-twice"} <= {f.rule for f in watched.findings}
    assert "guard-fault" not in watched.counts
    assert engine.global_steps == 1


def test_a_contract_that_cannot_be_read_nor_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSGUARD_CONTRACT", '{"contract": 0}')
    with handler(_Handler()):
        watched = guard(StubEngine())
    assert watched.findings == ()


def test_a_fault_that_cannot_be_told_is_none_of_the_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class UnspeakableError(Exception):
        def __str__(self) -> str:
            raise PlantedError

    def failing(*_: Any) -> Any:
        raise UnspeakableError

    engine = StubEngine()
    guard(engine)
    monkeypatch.setattr("dsguard.runtime.engines.deepspeed_hooks.batch_size", failing)
    train(engine, 4)
    assert engine.global_steps == 1
