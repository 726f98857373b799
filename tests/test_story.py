"""The story that dsguard exists for, told right: facts, findings, and what DeepSpeed really does.

The config says accumulation 1, the command line 8, and nobody says a word. Shipped as
``fixtures/runs/accumulation-ignored``: the config, its repair, the launch, the script.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import FIXTURES, Dsguard

STORY = FIXTURES / "runs" / "accumulation-ignored"
LAUNCH = (STORY / "launch.txt").read_text(encoding="utf-8").strip()
NAMED = " --deepspeed_config ds_config.json"
CONFIGS = {"as it is": "ds_config.json", "repaired": "ds_config.repaired.json"}


class Answer(NamedTuple):
    """What ``dsguard check -o json`` says."""

    code: int
    facts: dict[str, Any]
    findings: dict[str, dict[str, Any]]

    def value(self, fact: str) -> Any:
        assert self.facts[fact]["state"] == "known", self.facts[fact]
        return self.facts[fact]["value"]


def answer(dsguard: Dsguard, folder: Path, launch: str) -> Answer:
    outcome = dsguard(f"check ds_config.json -o json --target 0.19.8 -- {launch}", folder)
    report = json.loads(outcome.out)
    (check,) = report["checks"]
    findings = {finding["rule"]: finding for finding in report["findings"]}
    assert len(findings) == len(report["findings"])
    return Answer(outcome.code, check["facts"], findings)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("ds_config.json", "train.py"):
        shutil.copy(STORY / name, tmp_path)
    return tmp_path


def test_the_config_wins_over_the_command_line(dsguard: Dsguard, folder: Path) -> None:
    told = answer(dsguard, folder, LAUNCH)
    assert told.code == 1
    assert {rule: f["severity"] for rule, f in told.findings.items()} == {
        "accumulation-ignored": "error",
        "loader-batch-differs": "error",
    }
    steps = told.facts["gradient_accumulation_steps"]
    assert (steps["state"], steps["value"]) == ("known", 1)
    assert (steps["origin"]["kind"], steps["origin"]["line"]) == ("config", 3)
    assert [
        (loser["value"], loser["origin"]["kind"], loser["origin"]["argument"])
        for loser in steps["ignored"]
    ] == [(8, "launch", "--gradient_accumulation_steps")]
    assert told.value("world_size") == 4
    assert told.value("train_batch_size") == 32
    assert told.value("micro_batch_size") == 32 // 4 // 1
    assert told.value("samples_per_step") == 1 * 1 * 4
    assert "DeepSpeed counts 8 samples" in told.findings["loader-batch-differs"]["message"]
    assert "trains on 4 samples" in told.findings["accumulation-ignored"]["message"]
    because = told.findings["accumulation-ignored"]["because"]
    assert [(b["value"], b["origin"]["argument"]) for b in because] == [
        (8, "--gradient_accumulation_steps")
    ]


def test_the_offered_fix_is_the_repaired_config(dsguard: Dsguard, folder: Path) -> None:
    (edit,) = answer(dsguard, folder, LAUNCH).findings["accumulation-ignored"]["fix"]["edits"]
    text = (STORY / CONFIGS["as it is"]).read_text(encoding="utf-8")
    repaired = text[: edit["start"]] + edit["text"] + text[edit["end"] :]
    assert repaired == (STORY / CONFIGS["repaired"]).read_text(encoding="utf-8")


def test_the_repaired_config_is_clean(dsguard: Dsguard, folder: Path) -> None:
    shutil.copy(STORY / CONFIGS["repaired"], folder / "ds_config.json")
    told = answer(dsguard, folder, LAUNCH)
    assert told.code == 0
    assert told.findings == {}
    assert told.value("gradient_accumulation_steps") == 8
    assert told.value("micro_batch_size") == 32 // 4 // 8
    assert told.value("samples_per_step") == 1 * 8 * 4


def test_a_launch_that_names_no_config(dsguard: Dsguard, folder: Path) -> None:
    assert LAUNCH.endswith(NAMED)
    told = answer(dsguard, folder, LAUNCH.removesuffix(NAMED))
    assert {rule: f["severity"] for rule, f in told.findings.items()} == {
        "accumulation-ignored": "error",
        "loader-batch-differs": "error",
        "config-not-in-launch": "warning",
    }
    assert told.value("samples_per_step") == 4


class Training(NamedTuple):
    """What a real run of ``train.py`` printed."""

    micro_batches: int
    stepped_after: list[int]
    samples: list[int]
    counted: int


@pytest.mark.deepspeed
@pytest.mark.parametrize(
    ("config", "steps_after", "samples"),
    [("as it is", list(range(1, 17)), 2), ("repaired", [8, 16], 16)],
    ids=["as it is", "repaired"],
)
def test_deepspeed_does_what_the_facts_say(
    config: str,
    steps_after: list[int],
    samples: int,
    dsguard: Dsguard,
    folder: Path,
    extensions: str,
) -> None:
    """Two CPU ranks: half the total, and neither fp16 nor offload, which need a GPU."""
    pytest.importorskip("deepspeed")
    text = json.loads((STORY / CONFIGS[config]).read_text(encoding="utf-8"))
    text["train_batch_size"] //= 2
    del text["fp16"], text["zero_optimization"]["offload_optimizer"]
    (folder / "ds_config.json").write_text(json.dumps(text), encoding="utf-8")
    launch = f"{LAUNCH.replace('=4 ', '=2 ')} --samples 32"

    training = train(launch, folder, extensions)
    facts = answer(dsguard, folder, launch)
    assert training.micro_batches == 16
    assert training.stepped_after == steps_after
    assert set(training.samples) == {samples} == {facts.value("samples_per_step")}
    assert training.counted == 16 == facts.value("train_batch_size")
    apart = [after - before for before, after in zip([0, *steps_after], steps_after, strict=False)]
    assert set(apart) == {facts.value("gradient_accumulation_steps")}


def train(launch: str, folder: Path, extensions: str) -> Training:
    """Run the launch as it stands, but on the CPU and with a port of its own."""
    program, *words = shlex.split(launch)
    assert program == "torchrun"
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "",
        "DS_ACCELERATOR": "cpu",
        "OMP_NUM_THREADS": "1",
        # Compiling an op takes ninja, which lies beside the interpreter.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "TORCH_EXTENSIONS_DIR": extensions,
    }
    with subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=400)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            pytest.fail(f"the run did not end:\n{output[-3000:]}")
    # PyTorch's threads now and then abort a process that has already done and said everything.
    done = process.returncode == 0 or "terminate called without an active exception" in output
    assert done, output[-3000:]

    def said(label: str) -> Any:
        found = re.search(rf"^{label}: (.*?)(?: samples a step)?$", output, re.MULTILINE)
        assert found, output[-3000:]
        return json.loads(found[1])

    return Training(
        said("micro-batches"),
        said("optimizer steps after micro-batches"),
        said("samples of each optimizer step"),
        said("DeepSpeed counts"),
    )
