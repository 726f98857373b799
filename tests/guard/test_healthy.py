"""Runs with nothing wrong in them: the guard says nothing and counts what really happened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import ROOT
from tests.guard.fleet import run_on_ranks

pytestmark = pytest.mark.deepspeed

LOOPS = "tests.guard.healthy_loops"


@pytest.mark.parametrize("ranks", [1, 2])
def test_matrix_of_stages_precisions_accumulations_loaders_and_optimizers(ranks: int) -> None:
    by_rank = run_on_ranks(ranks, f"{LOOPS}:matrix", stages=[0, 1, 2, 3])
    for outcomes in by_rank:
        assert len(outcomes) == 96
        for name, outcome in outcomes.items():
            counted = outcome["counted"]
            accumulation = int(name.split("-")[2])
            assert outcome["told"] == [], name
            assert counted["micro_batches"] == 8, name
            assert counted["steps"] == 8 // accumulation, name
            assert outcome["micro_batches"] == counted["micro_batches"], name
            assert outcome["steps"] == counted["steps"], name
            assert outcome["pending"] == 0, name
            assert outcome["windows"] == [[accumulation, counted["steps"]]], name
            samples = ranks * counted["samples"] // counted["steps"]
            assert outcome["samples"] == [[samples, counted["steps"]]], name


NOTES = {
    "accelerate": {"short-window"},
    "hybrid_engine": {"window-open"},
    "looking_in_the_middle_of_a_window": {"window-open"},
    "manual_boundaries": {"short-window"},
    "short_last_batch": {"short-batch"},
    "trainer": {"short-window"},
}
"""What may be noted of a healthy loop, and no more than noted."""


@pytest.mark.parametrize(
    ("module", "ranks", "at_least"),
    [("healthy_singles", 1, 80), ("healthy_frameworks", 1, 15), ("healthy_pairs", 2, 13)],
)
def test_loops_of_many_shapes(module: str, ranks: int, at_least: int) -> None:
    for outcomes in run_on_ranks(
        ranks, "tests.guard.scenarios:run", module=f"tests.guard.{module}"
    ):
        assert len(outcomes) >= at_least
        _judge(outcomes)


def _judge(outcomes: dict[str, dict[str, Any]]) -> None:
    failed = {name: o["failed"] for name, o in outcomes.items() if o["failed"]}
    assert not failed, "\n".join(f"{name}\n{trace[-1500:]}" for name, trace in failed.items())
    told = {
        name: unexpected
        for name, outcome in outcomes.items()
        if (unexpected := [said for said in outcome["told"] if not _noted(name, said)])
    }
    assert not told, "\n".join(f"{name}: {said}" for name, said in told.items())


def _noted(name: str, said: str) -> bool:
    severity, _, rest = said.partition(" ")
    return severity == "info" and rest.partition(":")[0] in NOTES.get(name.partition("-")[0], ())


def test_resumed_in_a_fresh_process(tmp_path: Path) -> None:
    folder = str(tmp_path)
    for left in run_on_ranks(2, f"{LOOPS}:leave", folder=folder):
        assert left == {"told": [], "steps": 2}
    schema = json.loads((ROOT / "docs" / "contract-v1.schema.json").read_text())
    (kept,) = tmp_path.rglob("dsguard.json")
    jsonschema.validate(json.loads(kept.read_text()), schema)
    for resumed in run_on_ranks(2, f"{LOOPS}:resume", folder=folder):
        assert resumed == {"told": [], "steps": 4, "global_steps": 4, "windows": [[2, 4]]}
