"""Running a function of the tests on several ranks of a real DeepSpeed, on the CPU.

Every rank is a process of its own, so that importing DeepSpeed is paid for once a call: a
function that is run like this should do much. Ranks talk over gloo on this machine only.
"""

from __future__ import annotations

import gc
import importlib
import json
import logging
import os
import socket
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import IO, Any

from tests.releases.judge import fill_gaps

ROOT = Path(__file__).parent.parent.parent
_SECONDS = 300


class RankError(AssertionError):
    """A rank died or raised; the message holds its last words."""


def run_on_ranks(
    world_size: int,
    function: str,
    *,
    environment: dict[str, str] | None = None,
    may_die: tuple[int, ...] = (),
    with_deepspeed: bool = True,
    **arguments: Any,
) -> list[Any]:
    """Call ``module:function`` with JSON arguments on every rank; the results, by rank.

    Ranks in ``may_die`` give None where they end without a result.

    Raises:
        RankError: another rank did not return.
    """
    # Open as long as any rank but 0 lives: see _wait_for_the_others.
    others, alive = os.pipe()
    # Files take all that a rank says, whichever of them is waited for.
    said = [tempfile.TemporaryFile("w+") for _ in range(2 * world_size)]  # noqa: SIM115
    with socket.create_server(("127.0.0.1", 0)) as door:
        ranks = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.guard.fleet", function],
                stdin=subprocess.PIPE,
                stdout=said[2 * rank],
                stderr=said[2 * rank + 1],
                text=True,
                cwd=ROOT,
                pass_fds=[door.fileno(), others] if rank == 0 else [alive],
                env={
                    **rank_environment(rank, world_size, door),
                    "FLEET_OTHERS": str(others),
                    "FLEET_WITH_DEEPSPEED": str(int(with_deepspeed)),
                    **(environment or {}),
                },
            )
            for rank in range(world_size)
        ]
    os.close(others)
    os.close(alive)
    for child in ranks:
        assert child.stdin is not None
        child.stdin.write(json.dumps(arguments))
        child.stdin.close()
        child.stdin = None
    try:
        for child in ranks:
            child.wait(timeout=_SECONDS)
    finally:
        for child in ranks:
            child.kill()
    outs, errs = [_all_of(file) for file in said[::2]], [_all_of(file) for file in said[1::2]]
    failed = [
        f"rank {rank}, exit {child.returncode}:\n{errs[rank][-6000:]}"
        for rank, child in enumerate(ranks)
        if not outs[rank] and rank not in may_die
    ]
    if failed:
        raise RankError("\n".join(failed))
    return [json.loads(out) if out else None for out in outs]


def _all_of(file: IO[str]) -> str:
    with file:
        file.seek(0)
        return file.read()


def rank_environment(rank: int, world_size: int, door: socket.socket) -> dict[str, str]:
    """What a rank finds, as torchrun gives it, for the CPU; rank 0 inherits the ``door``."""
    return {
        **os.environ,
        "DS_ACCELERATOR": "cpu",
        "DS_BUILD_OPS": "0",
        "OMP_NUM_THREADS": "1",
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world_size),
        "LOCAL_SIZE": str(world_size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(door.getsockname()[1]),
        "FLEET_DOOR": str(door.fileno()),
    }


def _serve(function: str) -> None:
    """A rank: call the function, write its result as JSON to the real standard output."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    arguments = json.loads(sys.stdin.read())
    if os.environ["FLEET_WITH_DEEPSPEED"] == "1":
        prepare_deepspeed()
    join_ranks()
    module, _, name = function.partition(":")
    try:
        result = getattr(importlib.import_module(module), name)(**arguments)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    print(json.dumps(result), file=answers, flush=True)
    if os.environ["RANK"] == "0":
        _wait_for_the_others()
    # Destructors of PyTorch and DeepSpeed can abort an ordinary exit, or wait for other ranks.
    os._exit(0)


def _wait_for_the_others() -> None:
    """Rank 0 serves the store, which the others may still ask: it ends last, as an agent does."""
    with os.fdopen(int(os.environ["FLEET_OTHERS"]), "rb") as others:
        others.read()


def prepare_deepspeed() -> None:
    """Import DeepSpeed without compiling anything, and quietly."""
    if "FLEET_RELEASE" in os.environ:
        fill_gaps(tuple(int(part) for part in os.environ["FLEET_RELEASE"].split(".")))
    # By its full name: deepspeed.comm rebinds the attribute "torch" to PyTorch itself.
    shared_memory = importlib.import_module("deepspeed.comm.torch")
    if hasattr(shared_memory, "build_shm_op"):
        shared_memory.build_shm_op = lambda: None
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    import deepspeed  # noqa: F401

    # Each ZeRO-3 engine collects garbage while it is built: not what was imported.
    gc.freeze()


def join_ranks() -> None:
    """Make the process group, over a store that rank 0 serves as it does under torchrun."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.TCPStore(
        "127.0.0.1",
        int(os.environ["MASTER_PORT"]),
        world_size,
        is_master=rank == 0,
        master_listen_fd=int(os.environ["FLEET_DOOR"]) if rank == 0 else None,
    )
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
    if "deepspeed" in sys.modules:
        sys.modules["deepspeed"].init_distributed("gloo", verbose=False)


if __name__ == "__main__":
    _serve(sys.argv[1])
