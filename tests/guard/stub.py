"""What a guard sees of a DeepSpeed engine, without DeepSpeed: for what happens around one."""

from __future__ import annotations

from typing import Any

import torch

from dsguard.runtime.engines.deepspeed_view import BOUNDARY

MICRO_BATCH = 2


class StubEngine(torch.nn.Module):
    """Counts micro-steps as DeepSpeed does; an optimizer step adds 1 to every weight."""

    def __init__(self, accumulation: int = 4) -> None:
        super().__init__()
        self.module = torch.nn.Linear(2, 1)
        self.optimizer = self.basic_optimizer = torch.optim.SGD(self.module.parameters(), lr=0.1)
        self.lr_scheduler = None
        self.micro_steps = self.skipped_steps = self.global_steps = 0
        self.accumulation = accumulation
        self._weight = self.module.weight.detach().numpy()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.module(x).square().mean()

    def backward(self, loss: torch.Tensor, **_: Any) -> None:
        if loss is not None:
            (loss / self.accumulation).backward()

    def step(self) -> None:
        boundary = self.__dict__.get(BOUNDARY)
        if boundary is None:
            boundary = (self.micro_steps + 1) % self.accumulation == 0
        if boundary:
            self._take_model_step({})
        self.micro_steps += 1

    def _take_model_step(self, lr_kwargs: dict[str, Any]) -> None:
        self._weight += 1
        self.global_steps += 1

    def zero_grad(self, set_to_none: bool = True) -> None:
        pass

    def save_checkpoint(self, folder: str) -> None:
        pass

    def load_checkpoint(self, folder: str) -> None:
        pass

    def gradient_accumulation_steps(self) -> int:
        return self.accumulation

    def train_micro_batch_size_per_gpu(self) -> int:
        return MICRO_BATCH

    def train_batch_size(self) -> int:
        return MICRO_BATCH * self.accumulation

    def gradient_clipping(self) -> float:
        return 0.0

    def zero_optimization_stage(self) -> int:
        return 0

    def bfloat16_enabled(self) -> bool:
        return False

    def fp16_enabled(self) -> bool:
        return False


def train(engine: Any, micro_batches: int) -> None:
    """So many micro-batches."""
    x = torch.ones(MICRO_BATCH, 2)
    for _ in range(micro_batches):
        engine.backward(engine(x))
        engine.step()
