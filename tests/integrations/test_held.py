"""What every callback does around a training, without a trainer."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")
from dsguard.integrations.held import HeldTraining  # noqa: E402
from tests.guard.stub import StubEngine, train  # noqa: E402

pytestmark = pytest.mark.deepspeed


class Raising(logging.Handler):
    """A log handler of the script that has a fault."""

    def emit(self, record: logging.LogRecord) -> None:
        raise OSError("the disk is full")


@pytest.fixture
def raising() -> Iterator[None]:
    logger, handler = logging.getLogger("dsguard.guard"), Raising()
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)


def test_a_handler_that_raises_does_not_reach_the_trainer(raising: None) -> None:
    held = HeldTraining("the trainer", {})
    held.attach(None, {})
    assert held.guard is None


def test_a_closed_stdout_does_not_reach_the_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    held, engine, told = HeldTraining("the trainer", {}), StubEngine(2), io.StringIO()
    held.attach(engine, {"gradient_accumulation_steps": 2})
    train(engine, 4)
    monkeypatch.setattr("sys.stdout", told)
    held.end(speaks=True)
    assert told.getvalue().startswith("dsguard: ")
    told.close()
    held.end(speaks=True)
    assert held.guard is not None
    assert held.guard.summary().optimizer_steps == 2
