"""Asking the real ``deepspeed.initialize`` what it says to a config.

One subprocess judges a whole list on a two-layer model, on the CPU and as the only rank, so
that importing DeepSpeed is paid for once. The child reads a request as one JSON line on its
standard input and writes a verdict as one JSON line.

DeepSpeed's compiled ops are replaced by ones that do nothing, because compiling them takes
minutes: a step of FusedAdam or DeepSpeedCPUAdam is taken without moving a weight. Nor can one
rank on a CPU show what depends on CUDA, NVMe or the groups of several ranks.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

CLIENTS = ("sgd", "adamw")
"""Optimizers that the script may bring: ``torch.optim.SGD`` and ``torch.optim.AdamW``."""

_WIDTH = 8
_ABSENT = object()
_ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Verdict:
    """What became of one config.

    ``failed_in`` is None for a config that DeepSpeed accepts; ``error`` is then None too. Of an
    accepted one: the class of the engine's optimizer and of the one inside it, the scheduler's
    class, the dtype of the parameters, the learning rates, and ``values``: what the engine says
    to the dotted attributes that were asked for (methods without arguments are called). One
    that the engine does not have is left out.
    """

    failed_in: Literal["initialize", "step"] | None = None
    error: str | None = None
    message: str = ""
    optimizer: str | None = None
    basic_optimizer: str | None = None
    scheduler: str | None = None
    dtype: str | None = None
    learning_rates: tuple[float, ...] = ()
    stepped: bool = False
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether DeepSpeed took the config, and made the step where one was asked for."""
        return self.failed_in is None

    @property
    def complaint(self) -> str:
        """``TypeName: message``; empty for an accepted config."""
        return f"{self.error}: {self.message}" if self.error else ""


def initialize_all(
    configs: list[dict[str, Any]],
    *,
    client: str | None = None,
    step: bool = False,
    ask: tuple[str, ...] = (),
) -> list[Verdict]:
    """The verdict on each config, in order.

    ``client`` is the optimizer that the script passes, one of :data:`CLIENTS`; ``step`` also
    makes one micro-step (forward, backward, ``step``). ``ask`` names attributes of the engine
    for :attr:`Verdict.values`.

    Raises:
        RuntimeError: the subprocess died; its last words are in the message.
    """
    requests = [
        json.dumps({"config": config, "client": client, "step": step, "ask": ask})
        for config in configs
    ]
    environment = {
        **os.environ,
        "DS_ACCELERATOR": "cpu",
        "DS_BUILD_OPS": "0",
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
    }
    child = subprocess.run(
        [sys.executable, "-m", "tests.engine"],
        input="\n".join(requests),
        capture_output=True,
        text=True,
        cwd=_ROOT,
        env=environment,
        check=False,
    )
    lines = child.stdout.splitlines()
    if child.returncode != 0 or len(lines) != len(configs):
        raise RuntimeError(f"asking DeepSpeed failed after {len(lines)} verdicts: {child.stderr}")
    return [_verdict(json.loads(line)) for line in lines]


def _verdict(fields: dict[str, Any]) -> Verdict:
    fields["learning_rates"] = tuple(fields["learning_rates"])
    return Verdict(**fields)


def _serve() -> None:
    """The child: answer every request on the real standard output, silence everything else."""
    import importlib
    import logging
    from unittest import mock

    answers = os.fdopen(os.dup(1), "w")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)

    import torch
    from deepspeed.ops.op_builder.builder import OpBuilder

    OpBuilder.load = lambda self, verbose=True: mock.MagicMock(name=self.name)
    # By its full name: deepspeed.comm rebinds the attribute "torch" to PyTorch itself.
    importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
    )
    for line in sys.stdin:
        print(json.dumps(asdict(_judge(**json.loads(line)))), file=answers, flush=True)
    # Every verdict is told. A refused config leaves threads of PyTorch and DeepSpeed behind, and
    # an ordinary exit that runs their destructors can abort ("terminate called ...").
    os._exit(0)


def _judge(config: dict[str, Any], client: str | None, step: bool, ask: list[str]) -> Verdict:
    import deepspeed
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(_WIDTH, _WIDTH), torch.nn.Linear(_WIDTH, _WIDTH))
    optimizers = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}
    phase: Literal["initialize", "step"] = "initialize"
    try:
        engine, _, _, scheduler = deepspeed.initialize(
            model=model,
            model_parameters=model.parameters(),
            optimizer=optimizers[client](model.parameters(), lr=0.1) if client else None,
            config=config,
        )
        dtype = next(model.parameters()).dtype
        if step:
            phase = "step"
            engine.backward(engine(torch.ones(1, _WIDTH, dtype=dtype)).sum())
            engine.step()
        basic = engine.basic_optimizer
        return Verdict(
            optimizer=type(engine.optimizer).__name__,
            basic_optimizer=type(basic).__name__,
            scheduler=type(scheduler).__name__ if scheduler else None,
            dtype=str(dtype).removeprefix("torch."),
            learning_rates=tuple(float(g["lr"]) for g in basic.param_groups) if basic else (),
            stepped=step,
            values={name: said for name in ask if (said := _ask(engine, name)) is not _ABSENT},
        )
    except (Exception, SystemExit) as error:
        # Exception is what DeepSpeed raises, Warning included; a child that exits judges no more.
        message = " ".join(str(error).split())
        return Verdict(failed_in=phase, error=type(error).__name__, message=message)


def _ask(engine: Any, name: str) -> Any:
    value = engine
    for part in name.split("."):
        value = getattr(value, part, _ABSENT)
        if value is _ABSENT:
            return value
        if callable(value) and not hasattr(value, "parameters"):
            value = value()
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(value)


if __name__ == "__main__":
    _serve()
