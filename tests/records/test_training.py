"""Records of real runs: DeepSpeed trains, the guard writes, the report reads."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dsguard.records.overview import overview
from dsguard.records.run import read_run
from tests.conftest import ROOT
from tests.records.training import train

pytestmark = pytest.mark.deepspeed
pytest.importorskip("deepspeed")

SCHEMA = json.loads((ROOT / "docs" / "record-v1.schema.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def _own_extensions(extensions: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", extensions)


def lines(path: Path) -> list[dict[str, Any]]:
    told = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in told:
        jsonschema.validate(line, SCHEMA, jsonschema.Draft202012Validator)
    return told


def test_two_ranks_and_deepspeeds_own_monitor(tmp_path: Path) -> None:
    monitor = {"csv_monitor": {"enabled": True, "output_path": "logs", "job_name": "job"}}
    answers = train(tmp_path, 2, record=["run.jsonl", "function", "monitor"], config=monitor)
    for rank, answer in enumerate(answers):
        name = "run.jsonl" if rank == 0 else "run.rank1.jsonl"
        header, *steps, summary = lines(tmp_path / name)
        told = {"rank": rank, "world_size": 2, "gradient_accumulation_steps": 2, "zero_stage": 1}
        assert told.items() <= header.items()
        assert header["deepspeed"]
        assert steps == answer["taken"]
        assert [step["grad_norm"] for step in steps] == answer["norms"]
        # What the optimizer used, not what the scheduler has set for the next step.
        assert [step["learning_rate"] for step in steps] == answer["rates"]
        assert len(set(answer["rates"])) > 2
        counted = {(s["micro_batches"], s["expected"], s["samples"], s["tokens"]) for s in steps}
        assert counted == {(2, 2, 4, 32)}
        assert {step["tokens_unpadded"] for step in steps} == {24 + 2 * rank}
        assert (summary["finished"], summary["optimizer_steps"]) == (True, 4)
        assert answer["said"] == []
    with (tmp_path / "logs" / "job" / "dsguard_learning_rate.csv").open() as file:
        rows = list(csv.reader(file))[1:]
    assert [(int(samples), float(rate)) for samples, rate in rows] == [
        (8 * step, rate) for step, rate in enumerate(answers[0]["rates"], 1)
    ]
    told = overview(read_run(tmp_path / "run.jsonl"))
    assert (told.samples, told.tokens, told.imbalance, told.notes) == (32, 256, 0.0, [])


@pytest.mark.parametrize(
    ("stage", "known"), [(0, False), (3, True)], ids=["stage-0-fp32-keeps-no-norm", "stage-3"]
)
def test_what_deepspeed_keeps_of_the_norm(tmp_path: Path, stage: int, known: bool) -> None:
    (answer,) = train(tmp_path, steps=2, config={"zero_optimization": {"stage": stage}})
    norms = [line["grad_norm"] for line in lines(tmp_path / "run.jsonl")[1:-1]]
    assert norms == answer["norms"]
    assert all((norm is not None) == known for norm in norms)


def test_an_overflow_is_a_skipped_step_with_its_loss_scale(tmp_path: Path) -> None:
    config = {"fp16": {"enabled": True, "initial_scale_power": 30, "hysteresis": 1}}
    train(tmp_path, steps=3, config={**config, "zero_optimization": {"stage": 2}})
    _, *steps, summary = lines(tmp_path / "run.jsonl")
    told = [(step["applied"], step["grad_norm"], step["loss_scale"]) for step in steps]
    # The first scale is that of the step itself, not the one that the overflow led to.
    assert told == [(False, "Infinity", 2.0**power) for power in (30, 29, 28)]
    assert summary["skipped_steps"] == 3


def test_a_killed_run_that_is_started_again(tmp_path: Path) -> None:
    train(tmp_path, steps=2, kill=True)
    first = (tmp_path / "run.jsonl").read_bytes()
    expect = {"gradient_accumulation_steps": 4}
    (answer,) = train(tmp_path, steps=2, expect=expect)
    assert (tmp_path / "run.jsonl").read_bytes().startswith(first)
    told = overview(read_run(tmp_path / "run.jsonl"))
    assert [(start.steps, start.finished) for start in told.starts] == [(2, None), (2, True)]
    assert told.notes == ["start 1: no summary of rank 0: killed, or still running"]
    assert [f"{v.rule}: {v.message}" for v in told.violations] == answer["said"]
    differs = next(v for v in told.violations if v.rule == "expectation-differs")
    assert (differs.first_step, differs.ranks, differs.times) == (3, [0], 1)
    assert differs.file is not None
    assert differs.file.endswith("training.py")


def test_a_record_that_is_removed_stops_no_training(tmp_path: Path) -> None:
    (answer,) = train(tmp_path, steps=20, accumulation=1, remove=1)
    assert len(answer["norms"]) == 20
    (said,) = answer["said"]
    assert said.startswith("guard-fault: writing a record to run.jsonl failed (FileNotFoundError:")
    assert not (tmp_path / "run.jsonl").exists()
