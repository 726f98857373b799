"""Real training runs: what the facts and findings say is what the engine does."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Dsguard
from tests.frontends.judged import CONFIG, REAL, Judged, judge

pytestmark = REAL

BASE = {
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "zero_optimization": {"stage": 1},
}
LOOP = "--per_device_train_batch_size 2 --gradient_accumulation_steps 4"
# DeepSpeed's own AdamW is compiled first; torch's is not.
ADAMW = {"type": "AdamW", "params": {"torch_adam": True}}
WITHOUT_COUNT = {k: v for k, v in BASE.items() if k != "gradient_accumulation_steps"}

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "all auto": ({**BASE, "gradient_clipping": "auto"}, f"{LOOP} --max_grad_norm 0.3"),
    "no accumulation in the config": (WITHOUT_COUNT, LOOP),
    "no clipping in the config": (BASE, f"{LOOP} --max_grad_norm 0.3"),
    "no rate in the optimizer block": (
        {**BASE, "optimizer": ADAMW},
        f"{LOOP} --learning_rate 2e-5 --lr_scheduler_type constant",
    ),
    "scheduler block beside an argument": (
        {
            **BASE,
            "optimizer": {"type": "AdamW", "params": {"torch_adam": True, "lr": "auto"}},
            "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}},
        },
        f"{LOOP} --lr_scheduler_type cosine",
    ),
    "bf16 block without its switch": ({**BASE, "bf16": {}}, f"{LOOP} --bf16"),
    "no bf16 block": (BASE, f"{LOOP} --bf16"),
    "old name of bf16": ({**BASE, "bfloat16": {"enabled": True}}, LOOP),
    "another accumulation": ({**BASE, "gradient_accumulation_steps": 1}, LOOP),
    "boundaries of the engine's own": ({**BASE, "managed_gradient_accumulation": False}, LOOP),
}


@pytest.fixture(scope="module")
def trained(extensions: str) -> dict[str, dict[str, Any]]:
    """Every case, trained one after another in one process."""
    for package in ("deepspeed", "transformers", "accelerate"):
        pytest.importorskip(package)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "",
        "DS_ACCELERATOR": "cpu",
        "OMP_NUM_THREADS": "1",
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        # Compiling an op takes ninja, which lies beside the interpreter.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "TORCH_EXTENSIONS_DIR": extensions,
    }
    cases = {
        name: {"config": config, "words": shlex.split(words)}
        for name, (config, words) in CASES.items()
    }
    run = subprocess.run(
        [sys.executable, "-m", "tests.frontends.training"],
        input=json.dumps(cases),
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    last = run.stdout.rpartition("observed:")[2]
    assert run.returncode == 0, run.stderr[-3000:]
    observed: dict[str, dict[str, Any]] = json.loads(last.strip().splitlines()[0])
    return observed


@pytest.fixture
def told(dsguard: Dsguard, tmp_path: Path, request: pytest.FixtureRequest) -> Judged:
    """What dsguard says of the case that the test is about."""
    config, words = CASES[request.param]
    (tmp_path / CONFIG).write_text(json.dumps(config), encoding="utf-8")
    return judge(
        dsguard, tmp_path, f"torchrun --nproc_per_node 1 train.py --deepspeed {CONFIG} {words}"
    )


def of(name: str) -> Any:
    """Parametrize a test with what dsguard says of one case."""
    return pytest.mark.parametrize("told", [name], indirect=True)


@of("all auto")
def test_auto_takes_the_arguments(trained: dict[str, Any], told: Judged) -> None:
    run = trained["all auto"]
    assert run["stepped_after"] == [4, 8]
    assert run["gradient_clipping"] == 0.3 == told.known["gradient_clipping"]
    assert run["gradient_accumulation_steps"] == 4 == told.known["gradient_accumulation_steps"]
    assert run["train_batch_size"] == 8 == told.known["train_batch_size"]
    assert told.rules == set()


@of("no accumulation in the config")
def test_the_trainer_accumulates_and_the_engine_counts_one(
    trained: dict[str, Any], told: Judged
) -> None:
    run = trained["no accumulation in the config"]
    assert run["stepped_after"] == [4, 8]
    assert told.known["samples_per_step"] == 2 * 4
    assert (run["gradient_accumulation_steps"], run["train_batch_size"]) == (1, 2)
    assert told.rules == {"accumulation-not-in-config"}
    assert told.refused == []


@of("no clipping in the config")
def test_an_absent_key_clips_at_one(trained: dict[str, Any], told: Judged) -> None:
    run = trained["no clipping in the config"]
    assert run["gradient_clipping"] == 1.0 == told.known["gradient_clipping"]
    assert told.rules == {"clipping-not-applied"}


@of("no rate in the optimizer block")
def test_the_optimizer_starts_with_its_own_rate(trained: dict[str, Any], told: Judged) -> None:
    run = trained["no rate in the optimizer block"]
    assert run["first_rate"] == 1e-3 == told.known["learning_rate"]
    assert told.rules == {"learning-rate-not-in-config"}


@of("scheduler block beside an argument")
def test_the_scheduler_block_wins(trained: dict[str, Any], told: Judged) -> None:
    run = trained["scheduler block beside an argument"]
    assert run["scheduler"] == "WarmupLR" == told.known["scheduler"]
    assert told.rules == {"trainer-argument-ignored"}


@of("bf16 block without its switch")
def test_an_empty_block_is_off(trained: dict[str, Any], told: Judged) -> None:
    assert trained["bf16 block without its switch"]["bf16"] is False
    assert told.rules == {"precision-argument-ignored"}


@of("no bf16 block")
def test_an_absent_block_is_put_in(trained: dict[str, Any], told: Judged) -> None:
    assert trained["no bf16 block"]["bf16"] is True
    assert told.rules == set()


@of("old name of bf16")
def test_the_old_name_does_not_count(trained: dict[str, Any], told: Judged) -> None:
    assert trained["old name of bf16"]["bf16"] is False
    assert "precision-argument-ignored" in told.rules


@of("another accumulation")
def test_a_mismatch_stops_after_the_model_is_built(trained: dict[str, Any], told: Judged) -> None:
    run = trained["another accumulation"]
    assert run["stopped"] == "train"
    assert "ds gradient_accumulation_steps=1 vs hf gradient_accumulation_steps=4" in run["error"]
    assert [line.partition(":")[0] for line in told.refused] == ["training-argument-mismatch"]


@of("boundaries of the engine's own")
def test_unmanaged_accumulation_fails_in_the_first_backward(
    trained: dict[str, Any], told: Judged
) -> None:
    run = trained["boundaries of the engine's own"]
    assert run["stopped"] == "train"
    assert run["error"].startswith("AssertionError: set_gradient_accumulation_boundary()")
    assert told.rules == {"unmanaged-accumulation"}
    assert told.refused == []
