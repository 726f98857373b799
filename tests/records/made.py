"""Records of runs that never were, made from the classes of their lines."""

from __future__ import annotations

import json
import math
import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dsguard.model.record import FoundLine, HeaderLine, Line, StepLine, SummaryLine, real

HEADER: dict[str, Any] = {
    "dsguard": "0.1.0",
    "deepspeed": "0.19.8",
    "torch": "2.13.0",
    "engine": "DeepSpeedEngine",
    "started_at": "2026-03-01T08:30:00.000+00:00",
    "rank": 0,
    "world_size": 1,
    "data_parallel_size": 1,
    "gradient_accumulation_steps": 4,
    "micro_batch_size": 2,
    "train_batch_size": 8,
    "gradient_clipping": 1.0,
    "zero_stage": 2,
    "precision": "fp16",
}
STEP: dict[str, Any] = {
    "rank": 0,
    "micro_batches": 4,
    "expected": 4,
    "samples": 8,
    "tokens": 4096,
    "tokens_unpadded": 4000,
    "applied": True,
    "grad_norm": 1.5,
    "learning_rate": 1e-4,
    "loss_scale": 65536.0,
}
FOUND: dict[str, Any] = {
    "code": "DSG903",
    "rule": "step-off-boundary",
    "severity": "error",
    "message": "a step on 2 micro-batches instead of 4",
    "file": "train.py",
    "line": 41,
    "help": "call engine.step() after every micro-batch",
}
SUMMARY: dict[str, Any] = {
    "rank": 0,
    "finished": True,
    "optimizer_steps": 0,
    "skipped_steps": 0,
    "micro_batches": 0,
    "pending_micro_batches": 0,
    "windows": {},
    "samples_per_step": {},
    "counts": {},
    "findings": [],
    "seconds": 0.0,
}


def header(**changes: Any) -> HeaderLine:
    return HeaderLine(**HEADER | changes)


def step(number: int, **changes: Any) -> StepLine:
    return StepLine(**{**STEP, "step": number, "seconds": number * 0.5, **changes})


def found(**changes: Any) -> FoundLine:
    return FoundLine(**FOUND | changes)


def summary(**changes: Any) -> SummaryLine:
    return SummaryLine(**SUMMARY | changes)


def write(path: Path, *lines: Line, torn: str = "") -> Path:
    """The lines as a file; ``torn`` comes behind them, without a line end."""
    text = "".join(json.dumps(asdict(line)) + "\n" for line in lines) + torn
    path.write_text(text, encoding="utf-8")
    return path


def long_run(folder: Path, steps: int, ranks: int = 1, *, message: str = "") -> Path:
    """A run with a warm-up, a decay, uneven ranks, overflows, two epochs' ends and findings."""
    path = folder / "run.jsonl"
    for rank in range(ranks):
        chance = random.Random(rank)
        lines: list[Line] = [
            header(
                rank=rank, world_size=ranks, data_parallel_size=ranks, train_batch_size=8 * ranks
            )
        ]
        seconds = 0.0
        for number in range(1, steps + 1):
            part = number / steps
            seconds += 0.8 + chance.random() * 0.1
            ends = number in (steps // 2, steps)
            skipped = number < 4 or chance.random() < 3 / steps
            norm = 0.4 + 6 * math.exp(-8 * part) + chance.lognormvariate(-1.5, 0.5)
            tokens = 2048 + round(900 * chance.random()) + 150 * rank
            findings = []
            if number == 3 and rank == 0:
                findings.append(
                    found(
                        code="DSG927",
                        rule="steps-skipped",
                        severity="info",
                        message="3 optimizer steps in a row were skipped because of an overflow",
                        help="a lower initial_scale_power",
                    )
                )
            if number == max(1, steps // 2):
                findings.append(found(message=message or FOUND["message"]))
            lines.append(
                step(
                    number,
                    rank=rank,
                    micro_batches=2 if ends else 4,
                    samples=4 if ends else 8,
                    tokens=tokens,
                    tokens_unpadded=round(tokens * 0.9),
                    applied=not skipped,
                    grad_norm=real(math.inf if skipped else norm),
                    learning_rate=1e-4 * min(1, part * 20) * (1 + math.cos(math.pi * part)) / 2,
                    loss_scale=float(2 ** max(12, 16 - min(number, 4))),
                    seconds=seconds,
                    findings=findings,
                )
            )
        counts = {"step-off-boundary": 2, "steps-skipped": 1}
        lines.append(summary(rank=rank, optimizer_steps=steps, counts=counts, seconds=seconds))
        write(path if rank == 0 else folder / f"run.rank{rank}.jsonl", *lines)
    return path
