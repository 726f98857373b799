"""``dsguard run`` to the end: the launch it stops, the one it starts, the engine held to it.

Real launchers and front ends on two CPU ranks.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytestmark = pytest.mark.deepspeed

SCRIPTS = Path(__file__).parent / "scripts"
TORCHRUN = "torchrun --standalone --nproc_per_node=2 train.py"


@dataclass(frozen=True)
class Job:
    """A training that two ranks run to the end, and how its launch is spoilt.

    ``spoilt`` replaces keys of the config. ``stopped_by`` is the rule that then stops the launch,
    ``said_by`` who asked for the accumulation, as the guard tells it. ``own`` are findings of the
    guard that are true of every run of this front end.
    """

    script: str
    launch: str
    config: dict[str, Any]
    spoilt: dict[str, Any]
    stopped_by: str
    said_by: str
    package: str = "deepspeed"
    files: dict[str, str] = field(default_factory=dict)
    own: frozenset[str] = frozenset()


JOBS = {
    "loop": Job(
        "loop.py",
        f"{TORCHRUN} --deepspeed_config ds_config.json --guard --gradient_accumulation_steps 4",
        {
            "train_batch_size": 16,
            "gradient_accumulation_steps": 4,
            "optimizer": {"type": "Adam", "params": {"lr": 0.01, "torch_adam": True}},
        },
        {"train_batch_size": 4, "gradient_accumulation_steps": 1},
        "accumulation-ignored",
        "ds_config.json:3:",
    ),
    "trainer": Job(
        "trainer.py",
        f"{TORCHRUN} --deepspeed ds_config.json --per_device_train_batch_size 2"
        " --gradient_accumulation_steps 4 --num_train_epochs 1 --output_dir out --use_cpu"
        " --report_to none --save_strategy no --disable_tqdm true",
        {
            "train_batch_size": "auto",
            "train_micro_batch_size_per_gpu": "auto",
            "gradient_accumulation_steps": "auto",
            "gradient_clipping": "auto",
            "zero_optimization": {"stage": 2},
            "zero_allow_untested_optimizer": True,
        },
        {"gradient_accumulation_steps": 8},
        "training-argument-mismatch",
        "--gradient_accumulation_steps",
        "transformers",
    ),
    "accelerate": Job(
        "accelerated.py",
        "accelerate launch --config_file accelerate.yaml train.py"
        " --batch_size 2 --gradient_accumulation_steps 4",
        {
            "train_micro_batch_size_per_gpu": 2,
            "gradient_accumulation_steps": 4,
            "zero_optimization": {"stage": 2},
            "zero_allow_untested_optimizer": True,
        },
        {"train_batch_size": 32},
        "batch-size-mismatch",
        "ds_config.json:3:",
        "accelerate",
        {
            "accelerate.yaml": """\
compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
deepspeed_config:
  deepspeed_config_file: ds_config.json
  zero3_init_flag: false
machine_rank: 0
main_process_port: 0
num_machines: 1
num_processes: 2
"""
        },
    ),
    "lightning": Job(
        "fit.py",
        f"{TORCHRUN} --batch_size 2 --accumulate_grad_batches 4",
        {
            "train_micro_batch_size_per_gpu": 2,
            "zero_optimization": {"stage": 2},
            "zero_allow_untested_optimizer": True,
        },
        {"gradient_accumulation_steps": 8},
        "lightning-owns-accumulation",
        "--accumulate_grad_batches",
        "lightning",
        # It divides the loss by the accumulation, and the engine does it again.
        own=frozenset({"loss-divided-twice"}),
    ),
}


class Run(NamedTuple):
    """How a run ended."""

    code: int
    out: str
    err: str

    def told(self) -> set[str]:
        """The rules of the guard that spoke."""
        lines = [line for line in self.err.splitlines() if "[DSG9" in line]
        return {line.rpartition("(")[2].rstrip(")") for line in lines}


def run(
    folder: Path,
    job: Job,
    extensions: str,
    *more: str,
    options: str = "-q",
    spoilt: bool = False,
    launch: str | None = None,
) -> Run:
    """``dsguard run`` in a folder that holds the config and the script."""
    pytest.importorskip(job.package)
    config = job.config | (job.spoilt if spoilt else {})
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(config[key])}" for key in config)
    (folder / "ds_config.json").write_text(f"{{\n{lines}\n}}\n")
    shutil.copy(SCRIPTS / job.script, folder / "train.py")
    for name, text in job.files.items():
        (folder / name).write_text(text)
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
    words = [*shlex.split(launch or job.launch), *more]
    with subprocess.Popen(
        [sys.executable, "-m", "dsguard", "run", *options.split(), "--", *words],
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


@pytest.mark.parametrize("name", JOBS)
def test_the_bad_launch_starts_no_process(name: str, tmp_path: Path, extensions: str) -> None:
    job = JOBS[name]
    done = run(tmp_path, job, extensions, spoilt=True)
    assert done.code == 1, done.err[-3000:]
    assert f"({job.stopped_by})" in done.err
    assert "not started because of the findings above" in done.err
    assert done.out == ""


@pytest.mark.parametrize("name", JOBS)
def test_the_good_launch_trains_and_keeps_its_contract(
    name: str, tmp_path: Path, extensions: str
) -> None:
    done = run(tmp_path, JOBS[name], extensions)
    assert done.code == 0, done.err[-3000:]
    assert "steps 2" in done.out
    assert done.told() == JOBS[name].own


@pytest.mark.parametrize("name", JOBS)
def test_a_broken_contract_is_told_with_its_origin(
    name: str, tmp_path: Path, extensions: str
) -> None:
    """The script changes the accumulation behind everybody's back."""
    job = JOBS[name]
    done = run(tmp_path, job, extensions, "--behind-the-back", "1")
    assert done.code == 0, done.err[-3000:]
    assert "steps 8" in done.out
    broken = "the engine runs with gradient_accumulation_steps 1, not the 4"
    assert done.err.count(broken) == 1, "one rank speaks for both"
    assert f"because gradient_accumulation_steps is 4 ({job.said_by}" in done.err


def test_a_guard_without_touching_the_script(tmp_path: Path, extensions: str) -> None:
    job = JOBS["loop"]
    launch = job.launch.replace(" --guard", " --behind-the-back 1")
    done = run(tmp_path, job, extensions, launch=launch, options="-q --guard")
    assert done.code == 0, done.err[-3000:]
    assert "expectation-differs" in done.told()
    assert not run(tmp_path, job, extensions, launch=launch).told()
