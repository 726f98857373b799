"""``dsguard upgrade-check``: what changes for one config between two releases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Dsguard

CLEAN: dict[str, Any] = {
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 2,
    "gradient_clipping": 1.0,
    "steps_per_print": 10,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def write(folder: Path, **keys: Any) -> None:
    (folder / "ds.json").write_text(json.dumps(CLEAN | keys), encoding="utf-8")


def test_nothing_changes_for_a_config_that_says_everything(dsguard: Dsguard, folder: Path) -> None:
    write(folder)
    outcome = dsguard("upgrade-check ds.json --from 0.16.4 --to 0.19.8", folder)
    assert outcome.code == 0
    assert outcome.out.splitlines()[-1] == "Nothing changes for this config"


def test_a_removed_block_appears(dsguard: Dsguard, folder: Path) -> None:
    write(folder, elasticity={"enabled": False})
    outcome = dsguard("upgrade-check ds.json --from 0.19.7 --to 0.19.8", folder)
    assert outcome.code == 1
    assert "Appears with the new release" in outcome.out
    assert "(removed-key)" in outcome.out


def test_a_bug_goes(dsguard: Dsguard, folder: Path) -> None:
    write(folder, zero_optimization={"stage": 2, "overlap_comm": False})
    outcome = dsguard("upgrade-check ds.json --from 0.18.1 --to 0.18.3", folder)
    assert outcome.code == 0
    assert "Goes with the old release" in outcome.out
    assert "(known-bug)" in outcome.out


def test_defaults_of_what_is_left_out(dsguard: Dsguard, folder: Path) -> None:
    keys = {"zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}}}
    write(folder, **keys)
    config = json.loads((folder / "ds.json").read_text())
    del config["gradient_clipping"]
    (folder / "ds.json").write_text(json.dumps(config))
    outcome = dsguard("upgrade-check ds.json --from 0.19.2 --to 0.19.8", folder)
    lines = [line.strip() for line in outcome.out.splitlines()]
    assert "gradient_clipping: 0.0 -> 1.0" in lines
    assert "zero_optimization.offload_optimizer.pin_memory: false -> true" in lines
    assert not any(line.startswith("zero_optimization.offload_param") for line in lines)


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("upgrade-check", 2, "name a config"),
        ("upgrade-check ds.json --from 0.1.0", 2, "older than"),
        ("upgrade-check ds.json --from 0.16.4 --to next", 2, "not a DeepSpeed version"),
        ("upgrade-check gone.json --from 0.18.0", 3, "does not exist"),
    ],
)
def test_bad_input(dsguard: Dsguard, folder: Path, line: str, code: int, words: str) -> None:
    write(folder)
    outcome = dsguard(line, folder)
    assert outcome.code == code
    assert words in " ".join((outcome.out + outcome.err).split())


@pytest.mark.parametrize("releases", ["--from 0.16.4 --to 99.1", "--from 99.1 --to 0.16.4"])
def test_a_release_that_nobody_knows_yet(dsguard: Dsguard, folder: Path, releases: str) -> None:
    """Whether nothing changes in it cannot be said."""
    write(folder)
    outcome = dsguard(f"upgrade-check ds.json {releases}", folder)
    assert outcome.code == 2
    assert "DeepSpeed 99.1 is newer than" in outcome.err


def test_no_release_to_come_from(
    dsguard: Dsguard, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dsguard.facts.target.installed", lambda package: None)
    write(folder)
    outcome = dsguard("upgrade-check ds.json", folder)
    assert outcome.code == 2
    assert "--from: no DeepSpeed that dsguard knows is installed or pinned here" in outcome.err
