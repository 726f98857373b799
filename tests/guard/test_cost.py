"""What the guard costs a micro-step: calls are counted, as a stopwatch counts the machine.

``benchmarks/guard.py`` takes the time of them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dsguard import Guard, guard
from tests.calls import calls

torch = pytest.importorskip("torch")
from dsguard.runtime.engines.deepspeed_view import BOUNDARY  # noqa: E402
from tests.guard.stub import MICRO_BATCH, StubEngine  # noqa: E402

pytestmark = pytest.mark.deepspeed

ACCUMULATION = 4
WARM_UP, WINDOWS = 6, 10
"""Windows before the guard looks at a sample only, and windows that are counted."""


def added(window: Callable[[], None], attach: Callable[[], Guard]) -> float:
    """Calls of Python functions that a guard adds to a micro-step."""

    def windows(number: int) -> None:
        for _ in range(number):
            window()

    windows(WARM_UP)
    bare = calls(lambda: windows(WINDOWS))
    with attach() as watched:
        windows(WARM_UP)
        watched.summary()  # changes nothing
        guarded = calls(lambda: windows(WINDOWS))
        assert watched.summary().optimizer_steps == WARM_UP + WINDOWS
    assert not watched.findings
    return (guarded - bare) / WINDOWS / ACCUMULATION


@pytest.mark.parametrize("by_keyword", [False, True])
def test_an_engine(by_keyword: bool) -> None:
    engine = StubEngine(ACCUMULATION)
    batch = torch.ones(MICRO_BATCH, 2)

    def window() -> None:
        for _ in range(ACCUMULATION):
            engine.backward(engine(x=batch) if by_keyword else engine(batch))
            engine.step()

    calls_added = added(window, lambda: guard(engine, on_violation="record"))
    assert 4 < calls_added < 5.5


@pytest.mark.parametrize("every", [True, False])
def test_an_engine_that_is_told_its_boundaries(every: bool) -> None:
    """With ``step()`` in every micro-batch, or at the boundaries only, as in Accelerate."""
    engine = StubEngine(ACCUMULATION)
    batch = torch.ones(MICRO_BATCH, 2)

    def window() -> None:
        for place in range(1, ACCUMULATION + 1):
            engine.__dict__[BOUNDARY] = place == ACCUMULATION
            engine.backward(engine(batch))
            if every or place == ACCUMULATION:
                engine.step()

    calls_added = added(window, lambda: guard(engine, on_violation="record"))
    assert 4 < calls_added < 5.5


def test_a_loop() -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.ones(2, 2)

    def window() -> None:
        for _ in range(ACCUMULATION):
            (model(batch).square().mean() / ACCUMULATION).backward()
        optimizer.step()
        optimizer.zero_grad()

    asked = {"gradient_accumulation_steps": ACCUMULATION, "micro_batch_size": 2}
    calls_added = added(
        window, lambda: guard(model, optimizer=optimizer, expect=asked, on_violation="record")
    )
    assert 10 < calls_added < 13
