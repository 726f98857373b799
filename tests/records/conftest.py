from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dsguard.runtime.records import Recorder
from dsguard.runtime.sinks import sinks_of
from dsguard.runtime.summary import Summary
from dsguard.runtime.windows import Windows


class Engine:
    """As much of an engine as a header asks for."""

    kind = "DeepSpeedEngine"

    def facts(self) -> dict[str, Any]:
        return {}


class Told:
    """Gauges whose answers a test sets."""

    def __init__(self) -> None:
        self.rate: Any = 1e-3
        self.scale: Any = None
        self.norm: Any = 2.5
        self.tracker: Any = None

    def learning_rate(self) -> Any:
        return self.rate

    def loss_scale(self) -> Any:
        return self.scale

    def grad_norm(self) -> Any:
        return self.norm

    def monitor(self) -> Any:
        return self.tracker


class Recording:
    """A recorder on one rank with what it is fed by."""

    def __init__(self, record: Any, rank: int = 0, world_size: int = 1) -> None:
        self.gauges, self.windows = Told(), Windows()
        self.findings: list[Any] = []
        self.troubles: list[str] = []
        self.recorder = Recorder(
            sinks_of(record),
            self.gauges,
            lambda what, error: self.troubles.append(f"{what}: {type(error).__name__}: {error}"),
        )
        engine: Any = Engine()
        self.recorder.start(engine, rank, world_size, world_size, self.findings)

    def step(self, micro_batches: int = 1, applied: bool = True, batch: Any = None) -> None:
        for _ in range(micro_batches):
            self.windows.forward(2)
            self.recorder.batch((), {} if batch is None else batch, self.windows)
            self.windows.backward(micro_batches)
        self.recorder.stepping()
        self.recorder.step(self.windows.optimizer_step(applied))

    def close(self, counts: Sequence[str] = ()) -> None:
        found = dict.fromkeys(counts, 1)
        self.recorder.close(Summary.of(self.windows, 1, found), finished=True)


@pytest.fixture
def recording() -> Callable[..., Recording]:
    return Recording
