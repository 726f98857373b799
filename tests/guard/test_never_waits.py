"""A guard never waits for a device: what makes the host wait is counted over whole runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from dsguard import guard
from dsguard.runtime.later import Later

torch = pytest.importorskip("torch")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from tests.guard.stub import MICRO_BATCH, StubEngine  # noqa: E402

pytestmark = pytest.mark.deepspeed

ACCUMULATION = 4
WINDOWS = 120
"""Beyond the windows that are looked at closely, a sample of later ones, and a second look."""

_WAITS = ("_local_scalar_dense", "item", "is_nonzero", "equal", "nonzero", "masked_select")
"""What hands a number, a truth or a shape of a device to the host."""


class Waits(TorchDispatchMode):
    """Counts operations for which the host would wait, and copies to another device."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if name in _WAITS or (name == "_to_copy" and kwargs.get("device") is not None):
            self.seen[name] += 1
        return func(*args, **kwargs)


@pytest.fixture
def under_way(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Numbers that were sent on their way, as from a device: on the CPU they are read at once."""
    sent: list[Any] = []

    def read(later: Later, tensor: Any, then: Callable[[float], None]) -> bool:
        sent.append(tensor)
        return True

    monkeypatch.setattr(Later, "read", read)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: pytest.fail("waited"))
    return sent


def waits(run: Callable[[], None], watched: AbstractContextManager[Any]) -> Counter[str]:
    """What a run waits for."""
    with watched, Waits() as counted:
        run()
    return counted.seen


@pytest.mark.parametrize("record", [False, True])
def test_an_engine(record: bool, under_way: list[Any], tmp_path: Path) -> None:
    engine = StubEngine(ACCUMULATION)
    x = torch.ones(MICRO_BATCH, 2)

    def run() -> None:
        for _ in range(WINDOWS * ACCUMULATION):
            engine.backward(engine(x))
            engine.step()

    bare = waits(run, nullcontext())
    path = tmp_path / "run.jsonl" if record else None
    watched = guard(engine, on_violation="record", record=path)
    assert waits(run, watched) == bare == {}
    assert watched.summary().windows == {ACCUMULATION: WINDOWS}
    assert watched.findings == ()
    assert under_way, "the guard has looked at numbers"
    assert not record or (path is not None and path.stat().st_size)


def test_a_loop(under_way: list[Any]) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.ones(MICRO_BATCH, 2)

    def run() -> None:
        for i in range(WINDOWS * ACCUMULATION):
            (model(x).square().mean() / ACCUMULATION).backward()
            if (i + 1) % ACCUMULATION == 0:
                optimizer.step()
                optimizer.zero_grad()

    bare = waits(run, nullcontext())
    asked = {"gradient_accumulation_steps": ACCUMULATION, "micro_batch_size": MICRO_BATCH}
    watched = guard(model, optimizer=optimizer, expect=asked, on_violation="record")
    assert waits(run, watched) == bare == {}
    assert watched.summary().windows == {ACCUMULATION: WINDOWS}
    assert watched.findings == ()
    assert under_way, "the guard has looked at numbers"


def test_waiting_is_seen() -> None:
    assert waits(lambda: torch.ones(()).item(), nullcontext()) == {"_local_scalar_dense": 1}
    assert waits(lambda: bool(torch.ones(2).any()), nullcontext())
