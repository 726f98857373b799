"""Training loops with nothing wrong in them, run on the ranks of :mod:`tests.guard.fleet`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import deepspeed
import torch
import torch.distributed as dist

from dsguard import Guard, guard

WIDTH = 8
MICRO_BATCH = 2
MICRO_BATCHES = 4
"""In one epoch on one rank: a multiple of every accumulation used here."""
EPOCHS = 2


class Model(torch.nn.Module):
    """A model that returns its own loss, as Hugging Face models do."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, 1)
        )

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The loss of a batch."""
        return torch.nn.functional.mse_loss(self.layers(x), y)


def dataset(samples: int) -> torch.utils.data.TensorDataset:
    """Seeded samples, the same on every rank."""
    make = torch.Generator().manual_seed(7)
    return torch.utils.data.TensorDataset(
        torch.randn(samples, WIDTH, generator=make), torch.randn(samples, 1, generator=make)
    )


def config(stage: int = 0, precision: str = "fp32", accumulation: int = 1) -> dict[str, Any]:
    """A ds_config without an optimizer."""
    return {
        "train_micro_batch_size_per_gpu": MICRO_BATCH,
        "gradient_accumulation_steps": accumulation,
        "zero_optimization": {"stage": stage},
        "zero_allow_untested_optimizer": True,
        "bf16": {"enabled": precision == "bf16"},
    }


JSON_OPTIMIZER = {"type": "Adam", "params": {"lr": 1e-2, "torch_adam": True}}


def initialize(config: dict[str, Any], model: Any = None, **arguments: Any) -> tuple[Any, Any]:
    """An engine and its loader."""
    torch.manual_seed(0)
    model = Model() if model is None else model
    if "optimizer" not in config and "optimizer" not in arguments:
        arguments["optimizer"] = torch.optim.Adam(model.parameters(), lr=1e-2)
    engine, _, loader, _ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), config=config, **arguments
    )
    return engine, loader


def dtype_of(engine: Any) -> torch.dtype:
    """What the engine computes in."""
    return torch.bfloat16 if engine.bfloat16_enabled() else torch.float32


def told(guarded: Guard) -> list[str]:
    """The findings of a guard, in words."""
    return [f"{f.severity.value} {f.rule}: {f.message}" for f in guarded.findings]


def matrix(
    stages: list[int],
    precisions: tuple[str, ...] = ("fp32", "bf16"),
    loaders: tuple[str, ...] = ("own", "deepspeed"),
) -> dict[str, dict[str, Any]]:
    """Every combination of precision, accumulation, loader and optimizer at these stages."""
    outcomes = {}
    for stage, precision, accumulation, loader, optimizer in itertools.product(
        stages, precisions, (1, 2, 4), loaders, ("client", "json")
    ):
        name = f"zero{stage}-{precision}-{accumulation}-{loader}-{optimizer}"
        settings = config(stage, precision, accumulation)
        if optimizer == "json":
            settings["optimizer"] = JSON_OPTIMIZER
        outcomes[name] = _matrix_run(settings, by_deepspeed=loader == "deepspeed")
    return outcomes


def _matrix_run(settings: dict[str, Any], *, by_deepspeed: bool) -> dict[str, Any]:
    ranks = dist.get_world_size()
    data = dataset(MICRO_BATCH * MICRO_BATCHES * ranks)
    engine, loader = initialize(settings, training_data=data if by_deepspeed else None)
    if by_deepspeed:
        loader.num_local_io_workers = 0
    else:
        sampler = torch.utils.data.DistributedSampler(data)
        loader = torch.utils.data.DataLoader(data, batch_size=MICRO_BATCH, sampler=sampler)
    guarded = guard(engine, dataloader=loader)
    counted = {"micro_batches": 0, "samples": 0}
    for x, y in _batches(loader, dtype_of(engine)):
        engine.backward(engine(x, y))
        engine.step()
        counted["micro_batches"] += 1
        counted["samples"] += len(x)
    summary = guarded.summary()
    guarded.close()
    return {
        "told": told(guarded),
        "counted": counted | {"steps": engine.global_steps},
        "micro_batches": summary.micro_batches,
        "steps": summary.optimizer_steps,
        "pending": summary.pending_micro_batches,
        "windows": list(summary.windows.items()),
        "samples": list(summary.samples_per_step.items()),
    }


def _batches(loader: Any, dtype: torch.dtype) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for _ in range(EPOCHS):
        for x, y in loader:
            yield x.to(dtype), y.to(dtype)


def leave(folder: str) -> dict[str, Any]:
    """Train, and leave a checkpoint with the counts of the guard in it."""
    engine, _ = initialize(config(2, accumulation=2))
    guarded = guard(engine)
    _steps(engine, 4)
    engine.save_checkpoint(folder, client_state={"guard": guarded.state_dict()})
    return {"told": told(guarded), "steps": guarded.summary().optimizer_steps}


def resume(folder: str) -> dict[str, Any]:
    """Go on from the checkpoint."""
    engine, _ = initialize(config(2, accumulation=2))
    guarded = guard(engine)
    _, client_state = engine.load_checkpoint(folder)
    guarded.load_state_dict(client_state["guard"])
    _steps(engine, 4)
    guarded.close()
    summary = guarded.summary()
    return {
        "told": told(guarded),
        "steps": summary.optimizer_steps,
        "global_steps": engine.global_steps,
        "windows": list(summary.windows.items()),
    }


def _steps(engine: Any, number: int) -> None:
    for x, y in itertools.islice(torch.utils.data.DataLoader(dataset(64), MICRO_BATCH), number):
        engine.backward(engine(x, y))
        engine.step()
