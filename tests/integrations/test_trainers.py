"""Guards of the HF Trainer, Accelerate and Lightning: silent over a healthy run, not over a fault.

Real packages on two CPU ranks, ZeRO 0 to 3.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.guard.fleet import run_on_ranks

pytestmark = pytest.mark.deepspeed

RANKS, MICRO_BATCH, ACCUMULATION = 2, 2, 4
STAGES = (0, 1, 2, 3)
ROWS = RANKS * MICRO_BATCH * (2 * ACCUMULATION + 3)
"""Rows of an epoch: two whole windows and three micro-batches more."""


def asked(job: str, cases: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """What each rank says of each case."""
    return run_on_ranks(RANKS, "tests.integrations.jobs:run", job=job, cases=cases)


@pytest.fixture(scope="module")
def trainer() -> list[dict[str, Any]]:
    pytest.importorskip("transformers")
    healthy = {str(stage): {"stage": stage, "rows": ROWS} for stage in STAGES}
    return asked("trainer", healthy | {"loader": {"stage": 2, "rows": ROWS, "batch": 6}})


@pytest.mark.parametrize("stage", STAGES)
def test_a_healthy_trainer(stage: int, trainer: list[dict[str, Any]]) -> None:
    """The Trainer ends the last window of an epoch early: a note."""
    for rank in trainer:
        found = rank[str(stage)]
        assert set(found["findings"].items()) <= {("short-window", "info")}
        assert found["windows"] == {"4": 4, "3": 2}
        assert found["samples"] == {"16": 4, "12": 2}
        assert found["optimizer_steps"] == found["global_step"] == 6
        assert found["logged"] == [16, 16, 12, 16, 16, 12]


def test_a_trainer_with_another_loader(trainer: list[dict[str, Any]]) -> None:
    for rank in trainer:
        found = rank["loader"]
        assert found["findings"]["micro-batch-differs"] == "error"
        assert found["because"]["micro-batch-differs"] == ["TrainingArguments"]


def test_a_trainer_that_counts_the_tokens_of_a_step() -> None:
    """The Trainer hands ``num_items_in_batch`` to the model, which then divides by it itself."""
    pytest.importorskip("transformers")
    cases = {
        f"{stage}-{across}": {"stage": stage, "rows": ROWS, "across_devices": across}
        for stage in STAGES
        for across in (True, False)
    }
    for rank in asked("language_model", cases):
        for name, found in rank.items():
            assert set(found["findings"].items()) <= {("short-window", "info")}, name
            assert found["windows"] == {"4": 4, "3": 2}, name
            assert found["optimizer_steps"] == found["global_step"] == 6, name


@pytest.fixture(scope="module")
def accelerate() -> list[dict[str, Any]]:
    pytest.importorskip("accelerate")
    healthy = {str(stage): {"stage": stage, "batches": 11} for stage in STAGES}
    planted = {plant: {"stage": 2, "batches": 8, "plant": plant} for plant in ("divided", "loader")}
    return asked("accelerate", healthy | planted)


@pytest.mark.parametrize("stage", STAGES)
def test_a_healthy_loop_under_accelerate(stage: int, accelerate: list[dict[str, Any]]) -> None:
    for rank in accelerate:
        found = rank[str(stage)]
        assert set(found["findings"].items()) <= {("short-window", "info")}
        assert found["windows"] == {"4": 4, "3": 2}
        assert found["optimizer_steps"] == found["global_step"] == 6


def test_faults_under_accelerate(accelerate: list[dict[str, Any]]) -> None:
    for rank in accelerate:
        assert rank["divided"]["findings"] == {"loss-divided-twice": "error"}
        assert "micro-batch-differs" in rank["loader"]["findings"]
        assert rank["loader"]["samples"] == {"48": 4}


@pytest.fixture(scope="module")
def lightning() -> list[dict[str, Any]]:
    pytest.importorskip("lightning")
    fits = {str(stage): {"stage": stage, "batches": 8} for stage in STAGES}
    planted = {"loader": {"stage": 2, "batches": 8, "plant": "loader"}}
    return asked("lightning", fits | planted)


@pytest.mark.parametrize("stage", STAGES)
def test_a_fit(stage: int, lightning: list[dict[str, Any]]) -> None:
    """Lightning divides the loss by ``accumulate_grad_batches``, and the engine does it again.

    ``ClosureResult.from_training_step_output`` in loops/optimization/automatic.py; the precision
    plugin then calls ``engine.backward(loss)`` without ``scale_wrt_gas=False``.
    """
    for rank in lightning:
        found = rank[str(stage)]
        assert found["findings"] == {"loss-divided-twice": "error"}
        assert found["windows"] == {"4": 4}
        assert found["optimizer_steps"] == found["global_step"] == 4
        assert found["logged"] == ACCUMULATION


def test_a_fit_with_another_loader(lightning: list[dict[str, Any]]) -> None:
    for rank in lightning:
        assert "micro-batch-differs" in rank["loader"]["findings"]
