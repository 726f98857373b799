"""Running small training scripts with the real DeepSpeed, to see what they do.

One child process per rank runs all scripts of a list, each by :mod:`runpy` in globals of its own,
so that importing DeepSpeed is paid for once. A script leaves its engine in the global ``engine``.
DeepSpeed's compiled ops are replaced as in :mod:`tests.engine`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parent.parent
_TIMEOUT = 10
"""Seconds after which a collective that not every rank joins fails instead of waiting."""


@dataclass(frozen=True)
class Run:
    """What became of one script on one rank.

    ``error`` and ``message`` are what it stopped with, None and empty where it ran to its end.
    ``steps`` counts the steps of the optimizers inside the engine; ``weights`` are the parameters
    of the engine's module afterwards; ``learning_rate`` is the last one. ``said`` is what the
    script left in the global ``said``.
    """

    error: str | None = None
    message: str = ""
    steps: int = 0
    weights: tuple[float, ...] = ()
    learning_rate: float | None = None
    said: Any = field(default=None)


def run_all(
    scripts: list[Path], *, ranks: int = 1, devices: Sequence[int] = ()
) -> list[tuple[Run, ...]]:
    """What became of each script, on every rank.

    ``devices`` says for each script how many the machine pretends to have.

    Raises:
        RuntimeError: a child died; its last words are in the message.
    """
    with tempfile.TemporaryDirectory() as folder:
        children = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.training", str(Path(folder) / "store")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=_ROOT,
                env=_environment(rank, ranks),
            )
            for rank in range(ranks)
        ]
        each = devices or [0] * len(scripts)
        request = "".join(f"{count}:{path}\n" for count, path in zip(each, scripts, strict=True))
        for child in children:
            assert child.stdin is not None
            child.stdin.write(request)
            child.stdin.close()
            child.stdin = None
        results: list[list[Run]] = []
        for child in children:
            out, err = child.communicate()
            lines = out.splitlines()
            if child.returncode != 0 or len(lines) != len(scripts):
                raise RuntimeError(f"running failed after {len(lines)} scripts: {err[-4000:]}")
            results.append([_run(json.loads(line)) for line in lines])
    return list(zip(*results, strict=True))


def _environment(rank: int, ranks: int) -> dict[str, str]:
    return {
        **os.environ,
        "DS_ACCELERATOR": "cpu",
        "DS_BUILD_OPS": "0",
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
        "OMP_NUM_THREADS": "1",
    }


def _run(fields: dict[str, Any]) -> Run:
    return Run(**{**fields, "weights": tuple(fields["weights"])})


def _serve(store: str) -> None:
    """The child: run every script, tell on the real standard output, silence everything else."""
    import importlib
    import logging
    from datetime import timedelta
    from unittest import mock

    answers = os.fdopen(os.dup(1), "w")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)

    import torch
    from deepspeed.ops.op_builder.builder import OpBuilder

    OpBuilder.load = lambda self, verbose=True: mock.MagicMock(name=self.name)
    importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo",
        store=torch.distributed.FileStore(store, ranks),
        rank=rank,
        world_size=ranks,
        timeout=timedelta(seconds=_TIMEOUT),
    )
    for line in sys.stdin:
        count, _, path = line.strip().partition(":")
        with mock.patch("torch.cuda.device_count", return_value=int(count)):
            print(json.dumps(asdict(_judge(path))), file=answers, flush=True)
    # As in tests.engine: an ordinary exit that runs native destructors can abort.
    os._exit(0)


def _judge(path: str) -> Run:
    import runpy

    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    stepped: list[object] = []
    hook = register_optimizer_step_post_hook(lambda optimizer, *_: stepped.append(optimizer))
    torch.manual_seed(0)
    folder, environment, sys.argv = Path.cwd(), dict(os.environ), [path]
    os.chdir(Path(path).parent)
    try:
        with tempfile.TemporaryDirectory() as output:
            os.environ["OUTPUT"] = output
            seen = runpy.run_path(path, run_name="__main__")
        return _seen(seen, stepped)
    except (Exception, SystemExit) as error:
        return Run(type(error).__name__, " ".join(str(error).split())[:2000], len(stepped))
    finally:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        _forget()
        hook.remove()


def _forget() -> None:
    """Forget what a script has told Accelerate and transformers for the rest of the process."""
    if "accelerate" in sys.modules:
        from accelerate.state import AcceleratorState, GradientState

        AcceleratorState._reset_state(True)
        GradientState._reset_state()
    if "transformers.integrations.deepspeed" in sys.modules:
        from transformers.integrations.deepspeed import unset_hf_deepspeed_config

        unset_hf_deepspeed_config()


def _seen(seen: dict[str, Any], stepped: list[object]) -> Run:
    engine = seen.get("engine")
    if engine is None:
        return Run(steps=len(stepped), said=seen.get("said"))
    from deepspeed import zero

    base = getattr(engine, "basic_optimizer", None)
    parameters = list(engine.module.parameters())
    with zero.GatheredParameters(parameters):
        weights = tuple(float(one) for p in parameters for one in p.detach().float().reshape(-1))
    groups = base.param_groups if base is not None else []
    return Run(
        steps=sum(one is base for one in stepped),
        weights=weights,
        learning_rate=float(groups[0]["lr"]) if groups else None,
        said=seen.get("said"),
    )


if __name__ == "__main__":
    _serve(sys.argv[1])
