"""Padding and balance of BalancedBatchSampler beside the samplers of torch and Hugging Face.

    python benchmarks/balance.py [SAMPLES]

Three data sets with seeded lengths, 2 to 64 ranks, micro-batches of 4 samples, accumulation of 4.
Every order is measured by ``dsguard.data.audit``; nothing is trained. Each sampler runs as its
trainer runs it, at its default settings; then BalancedBatchSampler once more with as much
randomness as length grouping: the tolerance at which as many pairs of samples meet again in the
next epoch. At the end the time and memory of 10 million lengths, in a process of its own.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from torch.utils.data import DistributedSampler, RandomSampler
from transformers.trainer_pt_utils import BatchRebalanceSampler, LengthGroupedSampler

from dsguard.data import Audit, BalancedBatchSampler, audit

RANKS = (2, 4, 8, 16, 32, 64)
SIZE = ACCUMULATION = 4
SHAPE: dict[str, Any] = {"micro_batch_size": SIZE, "gradient_accumulation_steps": ACCUMULATION}
OTHERS = ("DistributedSampler", "RandomSampler, dealt", "LengthGroupedSampler")
BALANCED, BUDGET, AS_RANDOM = "balanced", "balanced, token budget", "balanced, as random"
REBALANCED = "BatchRebalanceSampler"
MANY = 10_000_000


def data_sets(samples: int) -> dict[str, tuple[np.ndarray, list[str] | None]]:
    """Lengths in tokens, and modalities where there are several."""
    make = np.random.default_rng(0)
    text = np.clip(make.lognormal(6.0, 0.8, samples), 16, 8192)
    image = make.random(samples) < 0.4
    with_images = np.clip(make.lognormal(7.3, 0.25, samples), 600, 8192)
    alone = np.clip(make.lognormal(5.0, 0.6, samples), 16, 4096)
    code = np.clip((make.pareto(1.3, samples) + 1) * 150, 16, 32_768)
    return {
        "log-normal text": (text.astype(int), None),
        "bimodal text/image": (
            np.where(image, with_images, alone).astype(int),
            np.where(image, "image", "text").tolist(),
        ),
        "heavy-tailed code": (code.astype(int), None),
    }


def audits(lengths: np.ndarray, modality: list[str] | None, ranks: int) -> dict[str, Audit]:
    """Every way of batching this data set for so many ranks."""
    listed = lengths.tolist()

    def told(sampler: Any, of: np.ndarray = lengths) -> Audit:
        return audit(sampler, of, world_size=ranks, **SHAPE)

    def balanced(**arguments: Any) -> Audit:
        arguments = {**SHAPE, "modality": modality, **arguments}
        return told(BalancedBatchSampler(lengths, rank=0, world_size=ranks, **arguments))

    found = {
        "DistributedSampler": told(DistributedSampler(listed, ranks, 0)),
        "RandomSampler, dealt": told(RandomSampler(listed)),
        "LengthGroupedSampler": told(LengthGroupedSampler(SIZE * ACCUMULATION, lengths=listed)),
    }
    # Its search is written in Python and slow: a part of the samples shows what it costs.
    if ranks <= 16:
        part = lengths[: 20 * SIZE * ACCUMULATION * ranks]
        at_once = SIZE * ACCUMULATION * ranks
        rebalanced = BatchRebalanceSampler(part.tolist(), at_once, ranks, ACCUMULATION)
        found[REBALANCED] = told(rebalanced, part)
    found[BALANCED] = balanced()
    budget = max(int(SIZE * lengths.mean()), int(lengths.max()))
    found[BUDGET] = balanced(micro_batch_size=None, max_tokens=budget)
    goal = found["LengthGroupedSampler"].shuffling.mates_kept
    found[AS_RANDOM] = as_random(goal or 0.0, lambda t: balanced(tolerance=t))
    return found


def as_random(kept: float, balanced: Callable[[float], Audit]) -> Audit:
    """With the least tolerance at which no more pairs of samples meet again than that."""
    low, high = -3.5, 1.0  # decimal logarithms
    for _ in range(8):
        middle = (low + high) / 2
        if (balanced(10**middle).shuffling.mates_kept or 0) > kept:
            low = middle
        else:
            high = middle
    return balanced(10**high)


def rows(table: Table, name: str, ranks: int, found: dict[str, Audit]) -> None:
    """One line for each way."""
    shuffled = found["DistributedSampler"].epoch_cost / found["DistributedSampler"].samples
    for way, told in found.items():
        shuffling = told.shuffling
        table.add_row(
            name if way == OTHERS[0] else "",
            str(ranks) if way == OTHERS[0] else "",
            way,
            f"{told.padding:.2%}",
            f"{told.step_imbalance.mean:.2%}",
            f"{told.micro_batch_imbalance.mean:.2%}",
            f"{told.waiting_micro_batch:.1%}",
            f"{told.epoch_cost / told.samples / shuffled:.3f}",
            f"{shuffling.mates_kept:.2%}" if shuffling.mates_kept is not None else "",
            f"{shuffling.clustering:.1f}" if shuffling.clustering is not None else "",
        )
    table.add_section()


def setup(arguments: dict[str, Any]) -> None:
    """Print the seconds of one core and the megabytes until the first batch of 64 ranks."""
    lengths = np.clip(np.random.default_rng(0).lognormal(6, 0.8, MANY), 16, 8192).astype(np.int64)
    start = time.process_time()
    sampler = BalancedBatchSampler(
        lengths, gradient_accumulation_steps=4, rank=0, world_size=64, **arguments
    )
    next(iter(sampler))
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{seconds:.1f} s of one core, {peak:,.0f} MB at the peak, lengths and numpy included")


def main() -> None:
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    console = Console(width=150)
    columns = ("data", "ranks", "way", "padding", "step", "micro-step", "waiting", "time", "kept")
    table = Table(*columns, "clustering", title=f"{samples:,} samples, 4 x 4 a rank and step")
    worst: dict[str, list[float]] = {BALANCED: [], AS_RANDOM: [], BUDGET: []}
    imbalance: list[float] = []
    for name, (lengths, modality) in data_sets(samples).items():
        for ranks in RANKS:
            found = audits(lengths, modality, ranks)
            rows(table, name, ranks, found)
            best = min(found[other].padding for other in OTHERS)
            for way, ratios in worst.items():
                ratios.append(found[way].padding / best)
            imbalance.append(found[BALANCED].step_imbalance.mean)
    console.print(table)
    console.print(
        "step, micro-step: load of the rank with the most / mean - 1, over optimizer steps and "
        "micro-steps. waiting: where ranks meet in every micro-batch. time: of an epoch, "
        "DistributedSampler is 1. kept: pairs of samples in one micro-batch that are in one in the "
        "next epoch. clustering: how much more the mean length of a step varies than at random."
    )
    for way, ratios in worst.items():
        console.print(
            f"{way}: padding is {max(ratios):.2f} of the best of the others at worst, "
            f"{float(np.median(ratios)):.2f} in the median"
        )
    console.print(
        f"step imbalance: {max(imbalance):.2%} at worst, {np.median(imbalance):.2%} median"
    )
    for arguments in ({"micro_batch_size": 4}, {"max_tokens": 16_384}):
        code = f"from benchmarks.balance import setup; setup({arguments!r})"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        console.print(f"{MANY:,} lengths, 64 ranks, {arguments}: {done.stdout.strip()}")


if __name__ == "__main__":
    main()
