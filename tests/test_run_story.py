"""``dsguard run`` to the end: the launch it stops, the one it starts, the engine held to it.

Real torchrun and DeepSpeed on two CPU ranks.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.deepspeed

CONFIG = """{
  "train_batch_size": 16,
  "gradient_accumulation_steps": 4,
  "optimizer": {"type": "Adam", "params": {"lr": 0.01, "torch_adam": true}}
}
"""

TRAIN = """
import argparse, importlib, json
import torch
importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None
import deepspeed

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=2)
parser.add_argument("--gradient_accumulation_steps", type=int, default=4)
parser.add_argument("--change", type=int, default=0)
deepspeed.add_config_arguments(parser)
args = parser.parse_args()
deepspeed.init_distributed("gloo")
config = json.load(open(args.deepspeed_config))
if args.change:
    config["gradient_accumulation_steps"] = args.change
    config["train_batch_size"] = 4 * args.change
torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
engine, *_ = deepspeed.initialize(
    model=model, model_parameters=model.parameters(), config=config
)
{guard}
for _ in range(8):
    loss = engine(torch.randn(args.batch_size, 8)).pow(2).mean()
    engine.backward(loss)
    engine.step()
if engine.global_rank == 0:
    print("steps", engine.global_steps, flush=True)
"""

LAUNCH = "torchrun --standalone --nproc_per_node=2 train.py --deepspeed_config ds_config.json"


class Run(NamedTuple):
    """How a run ended."""

    code: int
    out: str
    err: str


def run(folder: Path, launch: str, extensions: str, options: str = "-q", guard: str = "") -> Run:
    """``dsguard run`` in a folder that holds the config and the script."""
    (folder / "ds_config.json").write_text(CONFIG)
    (folder / "train.py").write_text(TRAIN.replace("{guard}", guard))
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "",
        "DS_ACCELERATOR": "cpu",
        "DS_BUILD_OPS": "0",
        "OMP_NUM_THREADS": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "TORCH_EXTENSIONS_DIR": extensions,
    }
    for name in ("RANK", "WORLD_SIZE", "DSGUARD_CONTRACT"):
        environment.pop(name, None)
    with subprocess.Popen(
        [sys.executable, "-m", "dsguard", "run", *options.split(), "--", *shlex.split(launch)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            pytest.fail("the run did not end")
    return Run(process.returncode, out, err)


GUARD = "from dsguard import guard; guard(engine)"


def test_the_bad_launch_starts_no_process(tmp_path: Path, extensions: str) -> None:
    done = run(tmp_path, f"{LAUNCH} --gradient_accumulation_steps 8", extensions)
    assert done.code == 1
    assert "error[DSG203]" in done.err
    assert "steps" not in done.out


def test_the_good_launch_trains_and_keeps_its_contract(tmp_path: Path, extensions: str) -> None:
    done = run(tmp_path, LAUNCH, extensions, guard=GUARD)
    assert done.code == 0, done.err[-3000:]
    assert "steps 2" in done.out
    assert "DSG9" not in done.err


def test_a_broken_contract_is_told_with_its_origin(tmp_path: Path, extensions: str) -> None:
    """The script changes the accumulation behind everybody's back."""
    done = run(tmp_path, f"{LAUNCH} --change 1", extensions, guard=GUARD)
    assert done.code == 0, done.err[-3000:]
    assert "steps 8" in done.out
    assert "the engine runs with gradient_accumulation_steps 1, not the 4" in done.err
    assert "because gradient_accumulation_steps is 4 (ds_config.json:3:34)" in done.err
    # One rank speaks for both.
    assert done.err.count("gradient_accumulation_steps 1, not the 4") == 1


def test_a_guard_without_touching_the_script(tmp_path: Path, extensions: str) -> None:
    launch = f"{LAUNCH} --change 1"
    done = run(tmp_path, launch, extensions, options="-q --guard")
    assert done.code == 0, done.err[-3000:]
    assert "error[DSG901]" in done.err
    assert "DSG9" not in run(tmp_path, launch, extensions).err
