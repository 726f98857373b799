"""``dsguard diff``: what differs between two run contracts."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from tests.conftest import FIXTURES, ROOT, Dsguard

STORY = FIXTURES / "runs" / "accumulation-ignored"
LAUNCH = (STORY / "launch.txt").read_text(encoding="utf-8").strip()


@pytest.fixture
def contracts(dsguard: Dsguard, tmp_path: Path) -> tuple[Path, Path]:
    """The story's launch, as it is and repaired."""
    made = []
    for name in ("ds_config.json", "ds_config.repaired.json"):
        path = tmp_path / name.replace("ds_config", "run")
        launch = LAUNCH.replace("ds_config.json", name)
        line = f"run --dry-run --fail-on never --write-contract {path} --target 0.19.8 -- {launch}"
        assert dsguard(line, STORY).code == 0
        made.append(path)
    return made[0], made[1]


def test_a_contract_is_what_its_schema_says(contracts: tuple[Path, Path]) -> None:
    schema = json.loads((ROOT / "docs" / "contract-v1.schema.json").read_text())
    for path in contracts:
        jsonschema.validate(json.loads(path.read_text()), schema)


def test_check_keeps_the_contract_that_run_keeps(
    dsguard: Dsguard, contracts: tuple[Path, Path], tmp_path: Path
) -> None:
    kept = tmp_path / "checked.json"
    line = f"check ds_config.json --write-contract {kept} --target 0.19.8 -- {LAUNCH}"
    assert dsguard(line, STORY).code == 1
    assert json.loads(kept.read_text()) == json.loads(contracts[0].read_text())


def test_a_contract_is_of_one_launch(dsguard: Dsguard, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    outcome = dsguard(
        f"check ds_config.json ds_config.repaired.json --write-contract {kept}", STORY
    )
    assert outcome.code == 2
    assert "2 are checked" in outcome.err
    assert not kept.exists()


def test_no_contract_of_what_cannot_be_read(dsguard: Dsguard, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    assert dsguard(f"check absent.json --write-contract {kept}", tmp_path).code == 3
    assert not kept.exists()


def test_facts_files_and_who_said_so(dsguard: Dsguard, contracts: tuple[Path, Path]) -> None:
    outcome = dsguard(f"diff {contracts[0]} {contracts[1]}")
    assert outcome.code == 1
    blocks = outcome.out.split("\n\n")
    assert blocks[1:] == [
        "config_file\n"
        "  - ds_config.json  (--deepspeed_config)\n"
        "  + ds_config.repaired.json  (--deepspeed_config)",
        "micro_batch_size\n  - 8  (32 // 4 // 1)\n  + 1  (32 // 4 // 8)",
        "gradient_accumulation_steps\n"
        "  - 1  (ds_config.json:3:34)\n"
        "  + 8  (ds_config.repaired.json:3:34)",
        "samples_per_step\n  - 4  (--batch_size 1 x 1 x 4)\n  + 32  (--batch_size 1 x 8 x 4)",
        "file ds_config.json\n  ~ read by the first run only",
        "file ds_config.repaired.json\n  ~ read by the second run only",
        "6 differences\n",
    ]


def test_the_same_run(dsguard: Dsguard, contracts: tuple[Path, Path]) -> None:
    outcome = dsguard(f"diff {contracts[1]} {contracts[1]}")
    assert outcome.code == 0
    assert outcome.out.endswith("run the same\n")


def test_changed_packages_and_files(
    dsguard: Dsguard, contracts: tuple[Path, Path], tmp_path: Path
) -> None:
    data = json.loads(contracts[1].read_text())
    data["packages"]["deepspeed"] = "0.14.5"
    data["packages"].pop("torch", None)
    data["inputs"][0]["sha256"] = "0" * 64
    data["facts"]["zero_stage"] = {"state": "unknown", "reason": "nobody says", "ignored": []}
    other = tmp_path / "other.json"
    other.write_text(json.dumps(data))
    out = dsguard(f"diff {other} {contracts[1]}").out
    assert "package deepspeed\n  - 0.14.5\n" in out
    assert "package torch\n  - not installed\n" in out
    assert "file ds_config.repaired.json\n  ~ its content has changed\n" in out
    assert "zero_stage\n  - unknown: nobody says\n  + 3  (" in out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no JSON"),
        ("[]", "is no contract of dsguard"),
        ('{"contract": 9}', "is a contract of format 9; this dsguard reads format 1"),
        ('{"contract": 1, "facts": []}', "is a damaged contract"),
    ],
)
def test_what_is_no_contract(text: str, message: str, dsguard: Dsguard, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    outcome = dsguard(f"diff {path} {path}")
    assert outcome.code == 3
    assert message in outcome.err
    assert "Traceback" not in outcome.err


def test_a_file_that_is_not_there(dsguard: Dsguard, tmp_path: Path) -> None:
    outcome = dsguard(f"diff {tmp_path}/a.json {tmp_path}/b.json")
    assert outcome.code == 3
    assert "does not exist" in outcome.err
