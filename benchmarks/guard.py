"""What the guard costs in a micro-step, on the CPU.

    python benchmarks/guard.py [0|1|2|3|accelerate|ddp]

One process, two engines of that ZeRO stage (0 for Accelerate), or two models under DDP: windows of
one with the guard and of the other without it in turn, then the other way round, so that a busy
machine slows both; with the guard after its first windows, in which it looks closer. What the
guard adds is the median of the differences between a micro-step and the other's that follows or
precedes it.
"""

from __future__ import annotations

import importlib
import logging
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeAlias

os.environ.update(DS_ACCELERATOR="cpu", DS_BUILD_OPS="0", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")

import torch
from rich.console import Console
from rich.table import Table

from dsguard import Guard, guard
from dsguard.runtime.engines.data_parallel_hooks import DataParallelHooks
from dsguard.runtime.outputs import GradientCalls

ACCUMULATION = 4
PAIRS, ROUNDS = 80, 16
WINDOWS, WINDOWS_LARGE = 1500, 50
WARM_UP = 6
Spent: TypeAlias = "defaultdict[Any, list[int]]"


class Engine:
    """A model of linear layers under DeepSpeed."""

    calls = ("forward", "backward", "step", "zero_grad")

    def __init__(self, stage: int, batch: torch.Tensor, layers: int) -> None:
        import deepspeed

        model = stacked(batch.shape[1], layers)
        self.engine, *_ = deepspeed.initialize(
            model=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=1e-4),
            config={
                "train_micro_batch_size_per_gpu": batch.shape[0],
                "gradient_accumulation_steps": ACCUMULATION,
                "zero_optimization": {"stage": stage},
                "zero_allow_untested_optimizer": True,
            },
        )

    def guarded(self) -> Guard:
        """A guard on it."""
        return guard(self.engine, on_violation="record")

    @contextmanager
    def timed(self, spent: Spent, now: list[int]) -> Iterator[None]:
        """A guard on it; what its wrappers take around the engine's own methods goes to spent."""
        kind, inside = type(self.engine), [0]

        def timer(name: str, call: Callable[..., Any], *, within: bool) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                before, start = inside[0], time.perf_counter_ns()
                inside[0] = 0
                try:
                    return call(*args, **kwargs)
                finally:
                    took = time.perf_counter_ns() - start
                    if within:
                        inside[0] = before + took
                    else:
                        spent[name, now[0]].append(took - inside[0])
                        inside[0] = before

            return wrapper

        kept = {name: getattr(kind, name) for name in self.calls}
        for name, call in kept.items():
            setattr(kind, name, timer(name, call, within=True))
        try:
            with self.guarded():
                for name in self.calls:
                    wrapper = vars(self.engine)[name]
                    setattr(self.engine, name, timer(name, wrapper, within=False))
                yield
                for name in self.calls:
                    delattr(self.engine, name)
        finally:
            for name, call in kept.items():
                setattr(kind, name, call)

    def micro_step(self, batch: torch.Tensor, last: bool) -> None:
        """One micro-batch; the engine itself knows which is the last of a window."""
        self.engine.backward(self.engine(batch).square().mean())
        self.engine.step()


class Declared(Engine):
    """As Accelerate drives it, and the Trainer with it: boundaries are declared."""

    def micro_step(self, batch: torch.Tensor, last: bool) -> None:
        """One micro-batch."""
        loss = self.engine(batch).square().mean()
        self.engine.set_gradient_accumulation_boundary(is_boundary=last)
        self.engine.backward(loss)
        if last:
            self.engine.step()


class DataParallel:
    """The same model under ``DistributedDataParallel``."""

    names = (
        ("forward", "_see_forward"),
        ("a gradient", "_see_gradient"),
        ("step: before", "_before_step"),
        ("step: after", "_after_step"),
        ("zero_grad", "_zeroed"),
    )

    def __init__(self, batch: torch.Tensor, layers: int) -> None:
        self.samples = batch.shape[0]
        self.model = torch.nn.parallel.DistributedDataParallel(stacked(batch.shape[1], layers))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)

    def guarded(self) -> Guard:
        """A guard on it."""
        asked = {"gradient_accumulation_steps": ACCUMULATION, "micro_batch_size": self.samples}
        return guard(self.model, optimizer=self.optimizer, expect=asked, on_violation="record")

    @contextmanager
    def timed(self, spent: Spent, now: list[int]) -> Iterator[None]:
        """A guard on it; what its hooks take goes to spent."""

        def timer(name: str, hook: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any) -> Any:
                start = time.perf_counter_ns()
                try:
                    return hook(*args)
                finally:
                    spent[name, now[0]].append(time.perf_counter_ns() - start)

            return wrapper

        kept = {method: getattr(DataParallelHooks, method) for _, method in self.names}
        for name, method in self.names:
            setattr(DataParallelHooks, method, timer(name, kept[method]))
        try:
            with self.guarded():
                yield
        finally:
            for method, hook in kept.items():
                setattr(DataParallelHooks, method, hook)

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """Hooks where the guard has its own, which do nothing: PyTorch's part of the cost."""
        at_gradient = GradientCalls().call

        def forwarded(module: Any, args: Any, kwargs: Any, output: Any) -> None:
            at_gradient((output.grad_fn,), nothing)

        hooks = (
            self.model.register_forward_hook(forwarded, with_kwargs=True),
            self.optimizer.register_step_pre_hook(nothing),
            self.optimizer.register_step_post_hook(nothing),
        )
        yield
        for hook in hooks:
            hook.remove()

    def micro_step(self, batch: torch.Tensor, last: bool) -> None:
        """One micro-batch."""
        with nullcontext() if last else self.model.no_sync():
            (self.model(batch).square().mean() / ACCUMULATION).backward()
        if last:
            self.optimizer.step()
            self.optimizer.zero_grad()


def nothing(*args: Any) -> None:
    """A hook."""


def stacked(width: int, layers: int) -> torch.nn.Module:
    """The model."""
    return torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(layers)))


def run(
    trained: Engine | DataParallel,
    batch: torch.Tensor,
    windows: int,
    spent: Spent | None = None,
    at: Callable[[int], None] = lambda place: None,
) -> None:
    """So many windows; what each micro-step takes goes into ``spent``, by place in its window."""
    for _ in range(windows):
        for place in range(ACCUMULATION):
            at(place)
            start = time.perf_counter_ns()
            trained.micro_step(batch, place == ACCUMULATION - 1)
            if spent is not None:
                spent[place].append(time.perf_counter_ns() - start)


def typical(spent: Mapping[Any, list[int]]) -> float:
    """A micro-step in µs."""
    return statistics.mean(statistics.median(times) for times in spent.values()) / 1e3


def compare(
    pair: Sequence[Engine | DataParallel],
    batch: torch.Tensor,
    watch: Callable[[Any], AbstractContextManager[Any]],
) -> tuple[float, float]:
    """A micro-step by itself, and what it takes more where it is watched, in µs."""
    bare: Spent = defaultdict(list)
    added = []
    for trained in pair:
        run(trained, batch, WARM_UP)
    for turn in range(ROUNDS):
        watched, other = pair[turn % 2], pair[1 - turn % 2]
        more: Spent = defaultdict(list)
        alone: Spent = defaultdict(list)
        with watch(watched):
            run(watched, batch, WARM_UP)
            for number in range(PAIRS):
                both = [(watched, more), (other, alone)]
                for trained, spent in both if number % 2 else reversed(both):
                    run(trained, batch, 1, spent)
        differences = {
            place: [one - two for one, two in zip(more[place], times, strict=True)]
            for place, times in alone.items()
        }
        added.append(typical(differences))
        for place, times in alone.items():
            bare[place] += times
    return typical(bare), statistics.mean(added)


def empty_call() -> float:
    """A call of a Python function that does nothing, in ns: how fast this machine is now."""
    calls = 100_000
    times = []
    for _ in range(20):
        start = time.perf_counter_ns()
        for _ in range(calls):
            nothing()
        times.append((time.perf_counter_ns() - start) / calls)
    return statistics.median(times)


def breakdown(
    trained: Engine | DataParallel, batch: torch.Tensor, windows: int
) -> dict[str, float]:
    """µs a micro-step in each hook, with the clock's time."""
    spent: Spent = defaultdict(list)
    now = [0]
    with trained.timed(spent, now):
        run(trained, batch, WARM_UP)
        spent.clear()
        run(trained, batch, windows, at=lambda place: now.__setitem__(0, place))
    costs: dict[str, float] = defaultdict(float)
    for (name, _), times in spent.items():
        costs[name] += statistics.median(times) * len(times) / windows / ACCUMULATION / 1e3
    return costs


def main() -> None:
    kind = sys.argv[1] if len(sys.argv) > 1 else "0"
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
    )
    torch.manual_seed(0)
    batch, wide = torch.randn(8, 8), torch.randn(128, 512)
    pair = [made(kind, batch, 2) for _ in range(2)]
    small, large = pair[0], made(kind, wide, 12)
    call = empty_call()
    title = f"guard, {f'ZeRO-{kind}' if kind.isdigit() else kind}"
    titles = ("a micro-step of the tiny model", "bare, µs", "more, µs", "ratio", "empty calls")
    table = Table(*titles, title=title, caption=f"an empty call of Python takes {call:.0f} ns")
    ways: list[tuple[str, Any]] = [("guard", lambda trained: trained.guarded())]
    if isinstance(small, DataParallel):
        ways.append(("empty hooks", lambda trained: trained.hooked()))
    for name, watch in ways:
        bare, added = compare(pair, batch, watch)
        words = (f"{bare:.0f}", f"{added:.1f}", f"{1 + added / bare:.4f}")
        table.add_row(name, *words, f"{added * 1e3 / call:.0f}")
    # In a long micro-step the difference of two times drowns in their noise.
    hooks = Table("hook", "tiny model, µs", "larger model, µs", title="where")
    spent = breakdown(small, batch, WINDOWS)
    spent_large = breakdown(large, wide, WINDOWS_LARGE)
    for name, cost in spent.items():
        hooks.add_row(name, f"{cost:.2f}", f"{spent_large[name]:.2f}")
    together, together_large = sum(spent.values()), sum(spent_large.values())
    hooks.add_row("together", f"{together:.2f}", f"{together_large:.2f}")
    took: Spent = defaultdict(list)
    run(large, wide, WINDOWS_LARGE // 5, took)
    hooks.add_row("of a micro-step", "", f"{together_large / typical(took):.4f}")
    Console().print(table, hooks)


def made(kind: str, batch: torch.Tensor, layers: int) -> Engine | DataParallel:
    """What is trained, on batches like this one."""
    if kind == "ddp":
        return DataParallel(batch, layers)
    # By its full name: deepspeed.comm rebinds the attribute "torch" to PyTorch itself.
    importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    return Declared(0, batch, layers) if kind == "accelerate" else Engine(int(kind), batch, layers)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    # Destructors of PyTorch and DeepSpeed can abort an ordinary exit.
    os._exit(0)
