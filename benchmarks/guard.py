"""What the guard costs in a micro-step, on the CPU.

    python benchmarks/guard.py [ZERO-STAGE]

One process, one engine: blocks of windows with the guard and without it in turn, so that a busy
machine slows both; with the guard after its first windows, in which it looks closer. A micro-step
is the median of those at its place in the window.
"""

from __future__ import annotations

import importlib
import logging
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeAlias

os.environ.update(DS_ACCELERATOR="cpu", DS_BUILD_OPS="0", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")

import torch
from rich.console import Console
from rich.table import Table

from dsguard import guard
from dsguard.runtime.engines.deepspeed_hooks import DeepSpeedHooks

ACCUMULATION = 4
BLOCK = 10
BLOCKS = 60
WARM_UP = 6
Spent: TypeAlias = "defaultdict[Any, list[int]]"
HOOKS = {
    "forward: what goes in": "_before_forward",
    "forward: what comes out": "_after_forward",
    "backward": "_before_backward",
    "a gradient": "_output_gradient",
    "step: before": "_before_step",
    "step: after": "_after_step",
    "optimizer step: before": "_before_model_step",
    "optimizer step: after": "_after_model_step",
}


def engine(stage: int, width: int, layers: int) -> Any:
    import deepspeed

    model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(layers)))
    made, *_ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1e-4),
        config={
            "train_micro_batch_size_per_gpu": 8,
            "gradient_accumulation_steps": ACCUMULATION,
            "zero_optimization": {"stage": stage},
            "zero_allow_untested_optimizer": True,
        },
    )
    return made


def run(trained: Any, batch: torch.Tensor, windows: int, spent: Spent | None = None) -> None:
    """So many windows; what each micro-step takes goes into ``spent``, by place in its window."""
    for _ in range(windows):
        for place in range(ACCUMULATION):
            start = time.perf_counter_ns()
            trained.backward(trained(batch).square().mean())
            trained.step()
            if spent is not None:
                spent[place].append(time.perf_counter_ns() - start)


def typical(spent: Spent) -> float:
    """A micro-step in µs."""
    return statistics.mean(statistics.median(times) for times in spent.values()) / 1e3


def compare(trained: Any, batch: torch.Tensor, blocks: int) -> tuple[float, float]:
    """A micro-step without the guard, and what the guard adds, in µs."""
    run(trained, batch, WARM_UP)
    bare, guarded = defaultdict(list), defaultdict(list)
    for _ in range(blocks):
        with guard(trained, on_violation="record"):
            run(trained, batch, WARM_UP)
            run(trained, batch, BLOCK, guarded)
        run(trained, batch, 1)
        run(trained, batch, BLOCK, bare)
    return typical(bare), typical(guarded) - typical(bare)


def breakdown(trained: Any, batch: torch.Tensor, blocks: int) -> dict[str, float]:
    """µs a micro-step in each hook, with the clock's time."""
    spent: Spent = defaultdict(list)

    def timed(name: str, hook: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any) -> Any:
            start = time.perf_counter_ns()
            try:
                return hook(*args)
            finally:
                spent[name].append(time.perf_counter_ns() - start)

        return wrapper

    kept = {method: getattr(DeepSpeedHooks, method) for method in HOOKS.values()}
    for name, method in HOOKS.items():
        setattr(DeepSpeedHooks, method, timed(name, kept[method]))
    try:
        with guard(trained, on_violation="record"):
            run(trained, batch, WARM_UP)
            spent.clear()
            run(trained, batch, blocks * BLOCK)
    finally:
        for method, hook in kept.items():
            setattr(DeepSpeedHooks, method, hook)
    calls = blocks * BLOCK * ACCUMULATION
    return {
        name: statistics.median(times) * len(times) / calls / 1e3 for name, times in spent.items()
    }


def main() -> None:
    stage = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    torch.set_num_threads(1)
    # By its full name: deepspeed.comm rebinds the attribute "torch" to PyTorch itself.
    importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
    )
    torch.manual_seed(0)
    small, large = engine(stage, 8, 2), engine(stage, 384, 8)
    batch, wide = torch.randn(8, 8), torch.randn(8, 384)
    table = Table("a micro-step", "bare, µs", "guard, µs", "ratio", title=f"guard, ZeRO-{stage}")
    for name, trained, x, blocks in (
        ("tiny model", small, batch, BLOCKS),
        ("larger model", large, wide, BLOCKS // 3),
    ):
        bare, added = compare(trained, x, blocks)
        table.add_row(name, f"{bare:.0f}", f"{added:.1f}", f"{1 + added / bare:.4f}")
    hooks = Table("hook", "µs a micro-step", title="where, on the tiny model")
    spent = breakdown(small, batch, BLOCKS)
    for name, cost in spent.items():
        hooks.add_row(name, f"{cost:.2f}")
    hooks.add_row("together", f"{sum(spent.values()):.2f}")
    Console().print(table, hooks)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    # Destructors of PyTorch and DeepSpeed can abort an ordinary exit.
    os._exit(0)
