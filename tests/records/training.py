"""A child that trains a tiny model under DeepSpeed and a guard that records; one process a rank.

Started as ``python -m tests.records.training``, with the request as JSON in its first argument.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent


def train(folder: Path, ranks: int = 1, *, record: Any = "run.jsonl", **request: Any) -> list[Any]:
    """Train in this folder; what each rank printed as its last line, parsed.

    ``config`` is merged into the DeepSpeed config; ``expect`` goes to the guard. ``steps``
    optimizer steps of ``accumulation`` micro-batches with 2 sequences of 8 tokens each.
    ``remove``: the step after which the file is removed. ``kill``: the processes end after the
    last step without any good-bye.
    """
    request |= {"record": record}
    with tempfile.TemporaryDirectory() as meeting:
        environment = {
            **os.environ,
            "DS_ACCELERATOR": "cpu",
            "DS_BUILD_OPS": "0",
            "WORLD_SIZE": str(ranks),
            "LOCAL_SIZE": str(ranks),
            "MEETING": f"file://{meeting}/store",
            "PYTHONPATH": str(ROOT),
        }
        children = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.records.training", json.dumps(request)],
                cwd=folder,
                env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(ranks)
        ]
        outcomes = [child.communicate() for child in children]
    answers = []
    for child, (out, err) in zip(children, outcomes, strict=True):
        assert child.returncode == 0, f"{out}\n{err}"
        answers.append(json.loads(out.splitlines()[-1]))
    return answers


def _main(request: dict[str, Any]) -> None:
    import importlib
    from unittest import mock

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import deepspeed
    import torch
    from deepspeed.ops.op_builder.builder import OpBuilder

    from dsguard import guard

    OpBuilder.load = lambda self, verbose=True: mock.MagicMock(name=self.name)
    # By its full name: deepspeed.comm rebinds the attribute "torch" to PyTorch itself.
    importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    # PyTorch can train in fp16 on a CPU; DeepSpeed does not believe it.
    deepspeed.accelerator.get_accelerator().is_fp16_supported = lambda: True
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.distributed.init_process_group(
        "gloo", init_method=os.environ["MEETING"], rank=rank, world_size=world
    )
    torch.manual_seed(0)
    accumulation, steps = request.get("accumulation", 2), request.get("steps", 4)

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(16, 4)
            self.head = torch.nn.Linear(4, 16)

        def forward(self, input_ids: Any, attention_mask: Any, labels: Any) -> Any:
            logits = self.head(self.embed(input_ids))
            return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    model = Model()
    config = {
        "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": accumulation,
        "zero_optimization": {"stage": 1},
        "scheduler": {
            "type": "WarmupLR",
            "params": {"warmup_max_lr": 0.4, "warmup_num_steps": 4, "warmup_type": "linear"},
        },
        "zero_allow_untested_optimizer": True,
        **request.get("config", {}),
    }
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
        config=config,
    )
    taken: list[Any] = []
    record = [taken.append if one == "function" else one for one in _list(request["record"])]
    expect = request.get("expect")
    attached = guard(engine, record=record, expect=expect, on_violation="record")
    norms, rates = [], []
    for step in range(steps):
        for _ in range(accumulation):
            ids = torch.arange(16).reshape(2, 8)
            mask = torch.ones(2, 8, dtype=torch.int64)
            mask[1, 4 + rank :] = 0
            rates.append(engine.optimizer.param_groups[0]["lr"])
            engine.backward(engine(input_ids=ids, attention_mask=mask, labels=ids))
            engine.step()
        norm = engine.get_global_grad_norm()
        norms.append(None if norm is None else float(norm))
        if request.get("remove") == step:
            Path("run.jsonl").unlink()
    if not request.get("kill"):
        attached.close()
    said = [f"{found.rule}: {found.message}" for found in attached.findings]
    answer = {"norms": norms, "rates": rates[::accumulation], "said": said, "taken": taken}
    print(json.dumps(answer), file=answers, flush=True)
    torch.distributed.barrier()
    os._exit(0)


def _list(record: Any) -> list[Any]:
    return record if isinstance(record, list) else [record]


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]))
