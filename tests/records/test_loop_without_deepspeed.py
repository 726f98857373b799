"""The record of a loop without DeepSpeed, from the guard to the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsguard import guard
from dsguard.records.overview import overview
from dsguard.records.run import read_run

torch = pytest.importorskip("torch")


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(16, 4)

    def forward(self, input_ids, attention_mask):
        return (self.embed(input_ids).sum(-1) * attention_mask).sum()


def test_a_plain_module(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 1))
    expect = {"gradient_accumulation_steps": 2, "micro_batch_size": 3}
    path = tmp_path / "run.jsonl"
    ids, mask = torch.arange(12).reshape(3, 4), torch.ones(3, 4, dtype=torch.int64)
    mask[2, 1:] = 0
    attached = guard(model, optimizer=optimizer, expect=expect, record=path, on_violation="record")
    with attached:
        for size in (2, 2, 1):
            for _ in range(size):
                model(input_ids=ids, attention_mask=mask).backward()
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
    columns = read_run(path).columns
    assert list(columns.learning_rate) == [0.5, 0.25, 0.5 / 3]
    assert list(columns.micro_batches) == [2, 2, 1]
    assert list(columns.expected) == [2, 2, 2]
    assert list(columns.samples) == [6, 6, 3]
    assert list(columns.tokens) == [24, 24, 12]
    assert list(columns.tokens_unpadded) == [18, 18, 9]
    told = overview(read_run(path))
    assert (told.off_steps, told.starts[0].header.engine) == (1, "Model")
    assert told.grad_norm is None
    assert [(v.rule, v.first_step) for v in told.violations] == [
        (found.rule, 3) for found in attached.findings
    ]
