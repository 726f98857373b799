"""Loops with nothing wrong on two ranks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.pipe import PipelineModule

from dsguard import Guard, guard
from tests.guard.healthy_loops import MICRO_BATCH, WIDTH, config, initialize
from tests.guard.scenarios import batches, scenario


@scenario((2, 0), (2, 1), (1, 0), (1, 1))
def pipeline(stages: int, zero: int) -> Iterator[Guard]:
    layers = [torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, 1)]
    torch.manual_seed(0)
    model = PipelineModule(layers, num_stages=stages, loss_fn=torch.nn.functional.mse_loss)
    engine, _, _, _ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-2),
        config=config(zero, accumulation=4),
    )
    guarded = guard(engine)
    for step in range(3):
        engine.train_batch(batches(4, step))
        engine.eval_batch(batches(4, step))
    parallel = 2 // stages
    engine.set_train_batch_size(2 * MICRO_BATCH * parallel)
    for step in range(2):
        engine.train_batch(batches(2, step))
    summary = guarded.summary()
    assert summary.windows == {2: 2, 4: 3}, summary
    assert summary.optimizer_steps == engine.global_steps == 5
    samples = MICRO_BATCH * parallel
    # Only the first and the last stage see a batch.
    assert summary.samples_per_step in ({}, {2 * samples: 2, 4 * samples: 3}), summary
    yield guarded


@scenario(0, 1, 2, 3)
def counts_compared_every_step(stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=2))
    guarded = guard(engine, every=1)
    for x, y in batches(6, dist.get_rank()):
        engine.backward(engine(x, y))
        engine.step()
    assert guarded.summary().samples_per_step == {2 * 2 * MICRO_BATCH: 3}
    yield guarded


@scenario(0, 2, 3)
def saved_with_an_own_loader(stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=2))
    folder = [tempfile.mkdtemp()]
    dist.broadcast_object_list(folder)
    guarded = guard(engine, dataloader=range(6))
    for _ in range(2):
        for x, y in batches(6, dist.get_rank()):
            engine.backward(engine(x, y))
            engine.step()
        engine.save_checkpoint(folder[0])
        engine.load_checkpoint(folder[0])
        guarded.epoch_end()
    yield guarded


@scenario(0, 1)
def averaged_at_the_end(stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage))
    guarded = guard(engine)
    pending: list[Any] = list(batches(8, dist.get_rank()))
    while pending:
        with engine.no_sync():
            for _ in range(3):
                engine.backward(engine(*pending.pop()))
        engine.backward(engine(*pending.pop()))
        engine.step()
    assert guarded.summary().windows == {4: 2}
    yield guarded
