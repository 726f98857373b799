"""The guard on other releases of DeepSpeed, under the PyTorch that is installed.

``DSGUARD_RELEASES`` names a folder of unpacked sdists, as for ``tests/releases``::

    DSGUARD_RELEASES=... python -m pytest tests/guard/test_releases.py

A release is asked at the ZeRO stages that run under this PyTorch.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.guard.fleet import run_on_ranks
from tests.releases.asking import Release, releases_in

FOLDER = os.environ.get("DSGUARD_RELEASES")
RUNS = "tests.guard.release_runs"

pytestmark = [
    pytest.mark.deepspeed,
    pytest.mark.skipif(FOLDER is None, reason="DSGUARD_RELEASES names no folder"),
]

DOES_NOT_RUN = {
    "0.14.5": {3: "numactl is wanted"},
    "0.15.4": {3: "numactl is wanted"},
    "0.16.9": {3: "its updates are slightly wrong under newer PyTorch"},
    "0.18.9": {
        1: "a view is modified in place under newer PyTorch",
        2: "a view is modified in place under newer PyTorch",
    },
}
OLDEST = (0, 14, 5)

PLACES = [
    pytest.param(release, stage, id=f"{release.version}-zero{stage}")
    for release in (releases_in(Path(FOLDER)) if FOLDER else [])
    if tuple(map(int, release.version.split("."))) >= OLDEST
    for stage in range(4)
    if stage not in DOES_NOT_RUN.get(release.version, {})
]

RAW_BACKWARD = "backward-around-engine"
SINCE_RAW_BACKWARD = (0, 18, 3)
STOPS_BY_ITSELF = "'DeepSpeedZeroOptimizer' object has no attribute 'ipg_index'"
"""What ZeRO-2 of older releases says to the first ``loss.backward()``, before any step."""


def ask(release: Release, function: str, **arguments: Any) -> Any:
    environment = {"PYTHONPATH": str(release.folder), "FLEET_RELEASE": release.version}
    (answer,) = run_on_ranks(1, f"{RUNS}:{function}", environment=environment, **arguments)
    return answer


@pytest.mark.parametrize(("release", "stage"), PLACES)
def test_healthy(release: Release, stage: int) -> None:
    answer = ask(release, "healthy", stage=stage)
    assert answer["version"].startswith(release.version)
    for name, outcome in answer["outcomes"].items():
        said = [words for words in outcome["told"] if "known-bad-release" not in words]
        assert said == [], name
        assert outcome["steps"] == outcome["counted"]["steps"], name
        assert outcome["micro_batches"] == outcome["counted"]["micro_batches"], name


@pytest.mark.parametrize(("release", "stage"), PLACES)
def test_main_faults(release: Release, stage: int) -> None:
    found = ask(release, "faults", stage=stage)
    raw = found.pop(RAW_BACKWARD)
    version = tuple(map(int, release.version.split(".")))
    if version < SINCE_RAW_BACKWARD:
        assert any(RAW_BACKWARD in words or STOPS_BY_ITSELF in words for words in raw), raw
    missed = {
        rule: told for rule, told in found.items() if not any(f" {rule}: " in w for w in told)
    }
    assert not missed
