"""Two real ranks whose loaders differ in length, run by :mod:`tests.guard.fleet`."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

LENGTHS = {0: 6, 1: 4}
SECONDS = 3


class Loader:
    """As many batches as this rank has."""

    def __len__(self) -> int:
        return LENGTHS[int(os.environ["RANK"])]

    def __iter__(self) -> Any:
        import torch

        return iter(torch.ones(len(self), 1, 4))


def engine_of(stage: int) -> Any:
    import deepspeed
    import torch

    model = torch.nn.Linear(4, 1)
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        config={
            "train_micro_batch_size_per_gpu": 1,
            "gradient_accumulation_steps": 1,
            "zero_optimization": {"stage": stage},
            "zero_allow_untested_optimizer": True,
        },
    )
    return engine


def told_and_hung(stage: int) -> dict[str, Any]:
    """What the guard says before the first batch, and in which batch this rank then waits."""
    import torch.distributed as dist

    from dsguard import GuardViolation, guard

    raised = ""
    try:
        guard(engine_of(stage), dataloader=Loader(), on_violation="raise")
    except GuardViolation as violation:
        raised = violation.finding.message
    engine = engine_of(stage)
    guarded = guard(engine, dataloader=Loader(), on_violation="record")
    said = [finding.message for finding in guarded.findings]
    for group in (dist.group.WORLD, engine.data_parallel_group):
        dist.distributed_c10d._set_pg_timeout(timedelta(seconds=SECONDS), group)
    store = dist.distributed_c10d._get_default_store()
    waits_in = None
    for number, batch in enumerate(Loader(), 1):
        try:
            engine.backward(engine(batch).mean())
            engine.step()
        except RuntimeError as error:
            if "imed out" not in str(error):
                raise
            waits_in = number
            break
    if dist.get_rank() == 0:
        store.set("waited", "1")
    else:  # a rank that has ended would break the connection: it stays, as one that saves does
        store.wait(["waited"], timedelta(seconds=120))
    return {"raised": raised, "said": said, "waits_in": waits_in, "steps": engine.global_steps}


def even(stage: int) -> dict[str, Any]:
    """The same loop over a sampler that deals 10 samples to the two ranks."""
    import torch
    from torch.utils.data import DataLoader

    from dsguard import guard
    from dsguard.data import BalancedBatchSampler

    data = torch.ones(10, 4)
    loader = DataLoader(data, batch_sampler=BalancedBatchSampler(range(1, 11), 3))
    engine = engine_of(stage)
    guarded = guard(engine, dataloader=loader, on_violation="record", checks=["ranks-differ"])
    for batch in loader:
        engine.backward(engine(batch).mean())
        engine.step()
    return {"said": [f.message for f in guarded.findings], "steps": engine.global_steps}


def measured(stage: int) -> dict[str, Any]:
    """What the guard counts in a run over each sampler, and what the audit says of it before."""
    import deepspeed
    import numpy as np
    import torch
    from torch.utils.data import DataLoader, DistributedSampler

    from dsguard import guard
    from dsguard.data import BalancedBatchSampler, audit

    class Text(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(2, 4)

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return (self.embed(input_ids).mean(-1) * attention_mask).mean()

    def padded(lengths: list[int]) -> dict[str, Any]:
        mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        return {"input_ids": mask.long(), "attention_mask": mask.long()}

    lengths = np.random.default_rng(0).lognormal(3, 1, 48).astype(int) + 1
    shape = {"micro_batch_size": 2, "gradient_accumulation_steps": 3}
    balanced = BalancedBatchSampler(lengths, **shape)
    random = DistributedSampler(lengths.tolist())
    loaders = {
        "balanced": DataLoader(lengths.tolist(), batch_sampler=balanced, collate_fn=padded),
        "random": DataLoader(lengths.tolist(), 2, sampler=random, collate_fn=padded),
    }
    found: dict[str, Any] = {}
    for name, loader in loaders.items():
        model = Text()
        engine, *_ = deepspeed.initialize(
            model=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            config={
                "train_micro_batch_size_per_gpu": 2,
                "gradient_accumulation_steps": 3,
                "zero_optimization": {"stage": stage},
                "zero_allow_untested_optimizer": True,
            },
        )
        guarded = guard(engine, balance_every=4, on_violation="record", checks=["uneven-tokens"])
        for batch in loader:
            engine.backward(engine(**batch))
            engine.step()
        told = audit(loader, lengths, world_size=2, **shape)
        assert guarded.balance is not None
        found[name] = {
            "counted": [guarded.balance.imbalance, guarded.balance.padding],
            "said": [told.step_imbalance.mean, told.padding],
            "waiting": [guarded.balance.waiting, told.waiting_step],
            "rules": [finding.rule for finding in guarded.findings],
        }
    return found


def story(stage: int) -> dict[str, Any]:
    """What is counted, the even loop, then the one that hangs, in the same processes."""
    counted = measured(stage)
    return {"measured": counted, "even": even(stage), "uneven": told_and_hung(stage)}
