"""Tokens of the ranks, counted locally and compared every so many steps."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dsguard import guard
from dsguard.integrations.pace import Pace
from dsguard.runtime.balance import Balance, BalanceMeter, _measured

torch = pytest.importorskip("torch")

WINDOW: Any = SimpleNamespace(samples=2)


def batch(tokens: int, padding: int = 0) -> dict[str, Any]:
    mask = torch.ones(1, tokens + padding, dtype=torch.int64)
    mask[:, tokens:] = 0
    return {"input_ids": torch.zeros_like(mask), "attention_mask": mask}


def test_two_ranks_by_hand() -> None:
    # In the first step 30 and 10 tokens, in the second 20 and 40; 25 of all are no padding.
    counted = torch.tensor([[[1, 30, 10], [1, 20, 5]], [[1, 10, 5], [1, 40, 5]]])
    told = _measured(counted)
    assert (told.steps, told.ranks, told.samples) == (2, 2, 2.0)
    assert told.imbalance == pytest.approx((30 / 20 + 40 / 30) / 2 - 1)
    assert told.waiting == pytest.approx(1 - (20 + 30) / (30 + 40))
    assert (told.busiest, told.busiest_load) == (0, pytest.approx(1.0))
    assert told.padding == pytest.approx(1 - 25 / 100)


@pytest.mark.parametrize(
    ("column", "left"), [(0, {"samples"}), (1, {"imbalance", "padding"}), (2, {"padding"})]
)
def test_what_one_rank_cannot_count_is_unknown(column: int, left: set[str]) -> None:
    counted = torch.tensor([[[1, 30, 10]], [[1, 10, 5]]])
    counted[1, 0, column] = -1
    told = _measured(counted)
    assert {
        name for name in ("samples", "imbalance", "padding") if getattr(told, name) is None
    } == (left)


def test_a_meter_compares_every_so_many_steps() -> None:
    meter = BalanceMeter(2)
    told: list[Balance | None] = []
    for tokens, padding in ((10, 30), (10, 0), (5, 5), (7, 0)):
        meter.batch((), batch(tokens, padding))
        meter.batch((batch(tokens, padding),), {})  # two micro-batches, either way
        told.append(meter.step(WINDOW))
    assert told[0] is told[2] is None
    assert told[1] is not None
    assert told[1].padding == pytest.approx(60 / 100)
    assert told[3] is not None
    assert told[3].padding == pytest.approx(10 / 34)


class OnDevice:
    """A mask on a device: what is counted there is not read until the ranks compare."""

    dtype, shape, device = torch.int64, (1, 100), SimpleNamespace(type="cuda")

    def __init__(self) -> None:
        self.counted = 0

    def count_nonzero(self) -> Any:
        self.counted += 1
        return torch.tensor(30)

    def __ne__(self, other: object) -> Any:
        raise AssertionError("this would wait for the device")


def test_a_mask_on_a_device_is_counted_there() -> None:
    meter, mask = BalanceMeter(1), OnDevice()
    meter.batch((), {"input_ids": torch.zeros(1, 100), "attention_mask": mask})
    assert mask.counted == 1
    told = meter.step(WINDOW)
    assert told is not None
    assert told.padding == pytest.approx(0.7)


def test_a_batch_that_cannot_be_counted_keeps_no_rank_from_comparing() -> None:
    class Odd:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

    meter = BalanceMeter(1)
    for odd in ({"input_ids": Odd()}, {"labels": "none"}, {}):
        meter.batch((), odd)
        told = meter.step(WINDOW)
        assert told is not None
        assert told.imbalance is told.padding is None
    meter.batch((), batch(4, 4))
    told = meter.step(WINDOW)
    assert told is not None
    assert told.padding == 0.5


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(4, 2)

    def forward(self, input_ids: Any, attention_mask: Any) -> Any:
        return self.embed(input_ids).mean()


def test_the_guard_of_one_process() -> None:
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    guarded = guard(model, optimizer=optimizer, balance_every=2, on_violation="record")
    seen = []
    for tokens in (10, 20, 30, 40):
        model(**batch(tokens, tokens)).backward()
        optimizer.step()
        optimizer.zero_grad()
        seen.append(guarded.balance)
    assert seen[0] is None
    assert seen[1] is seen[2] is not None
    assert seen[1].imbalance == seen[1].waiting == 0
    assert seen[1].padding == seen[3].padding == 0.5
    assert [finding.rule for finding in guarded.findings] == ["mostly-padding"]
    assert guarded.counts == {"mostly-padding": 2}
    metrics = Pace().metrics(guarded)
    assert metrics["dsguard/padding"] == 0.5
    assert metrics["dsguard/imbalance"] == metrics["dsguard/waiting"] == 0


@pytest.mark.parametrize("every", [0, -1, True, 1.5, "2"])
def test_a_number_of_steps_that_makes_no_sense(every: Any) -> None:
    with pytest.raises(ValueError, match="balance_every is a number of optimizer steps"):
        guard(Model(), balance_every=every)
