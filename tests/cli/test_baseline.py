"""``dsguard baseline`` and ``--baseline``."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.conftest import Dsguard

CONFIG = """{
  "train_micro_batch_size_per_gpu": 4,
  "gradient_clipping": 1.0,
  "zero_optimization": {"stage": 2},
  "mine": 1,
  "reduce_bucket_size": 200000000
}
"""
BASELINE = """{"version": 1, "findings": [
  {"file": "configs/ds.json", "rule": "misplaced-key", "pointer": "/reduce_bucket_size"},
  {"file": "configs/ds.json", "rule": "unknown-key", "pointer": "/mine"}
 ]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "ds.json").write_text(CONFIG)
    (tmp_path / "dsguard.toml").write_text('target = "0.19.8"\n')
    return tmp_path


def found(dsguard: Dsguard, line: str, folder: Path) -> tuple[list[str], int]:
    report = json.loads(dsguard(f"{line} -o json", folder).out)
    rules = [finding["rule"] for finding in report["findings"]]
    return rules, report["summary"]["baselined"]


def test_create_then_check(dsguard: Dsguard, folder: Path) -> None:
    outcome = dsguard("baseline create configs", folder)
    assert (outcome.code, outcome.out) == (0, "dsguard-baseline.json accepts 2 findings\n")
    path = folder / "dsguard-baseline.json"
    assert path.read_text(encoding="utf-8") == BASELINE
    line = "check configs/ds.json --baseline dsguard-baseline.json"
    assert found(dsguard, line, folder) == ([], 2)
    line = "check ds.json --baseline ../dsguard-baseline.json"
    assert found(dsguard, line, folder / "configs") == ([], 2)
    (folder / "dsguard.toml").write_text('baseline = "dsguard-baseline.json"\n')
    assert found(dsguard, "check ds.json", folder / "configs") == ([], 2)
    assert found(dsguard, "check ds.json --isolated", folder / "configs")[1] == 0


def test_a_new_finding_counts(dsguard: Dsguard, folder: Path) -> None:
    (folder / "b.json").write_text(BASELINE)
    config = folder / "configs" / "ds.json"
    config.write_text(
        "\n\n" + CONFIG.replace('"mine": 1', '"mine": 2,\n "bf16": {"enabeld": true}')
    )
    line = "check configs --baseline b.json"
    assert found(dsguard, line, folder) == (["unknown-key"], 2)


def test_a_stale_entry_is_found_and_pruned(dsguard: Dsguard, folder: Path) -> None:
    path = folder / "b.json"
    path.write_text(BASELINE)
    config = folder / "configs" / "ds.json"
    config.write_text(CONFIG.replace('  "mine": 1,\n', ""))
    outcome = dsguard("check configs --baseline b.json -o concise", folder)
    assert outcome.out == (
        "b.json:3:3: warning[DSG013] stale-baseline: unknown-key finds nothing any more at /mine "
        "in configs/ds.json\n"
    )
    outcome = dsguard("baseline prune configs --baseline b.json", folder)
    assert outcome.out == "b.json: 1 stale, 1 entry left\n"
    assert "/mine" not in path.read_text()
    before = path.stat().st_ino
    outcome = dsguard("baseline prune configs --baseline b.json", folder)
    assert outcome.out == "b.json: 0 stale, 1 entry left\n"
    assert path.stat().st_ino == before


def test_entries_of_other_files_stay(dsguard: Dsguard, folder: Path) -> None:
    path = folder / "b.json"
    path.write_text(BASELINE)
    (folder / "other.json").write_text(CONFIG)
    assert "0 stale" in dsguard("baseline prune other.json --baseline b.json", folder).out
    (folder / "configs" / "ds.json").unlink()
    assert "2 stale" in dsguard("baseline prune other.json --baseline b.json", folder).out


def test_an_entry_that_only_a_launch_can_judge_stays(dsguard: Dsguard, folder: Path) -> None:
    config = folder / "configs" / "ds.json"
    config.write_text('{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1}')
    launch = "deepspeed --num_gpus 2 train.py --gradient_accumulation_steps 8 "
    launch += "--deepspeed_config configs/ds.json"
    dsguard(f"baseline create configs/ds.json --baseline b.json -- {launch}", folder)
    assert "accumulation-ignored" in (folder / "b.json").read_text()
    assert found(dsguard, "check configs/ds.json --baseline b.json", folder) == ([], 0)
    assert "0 stale" in dsguard("baseline prune configs --baseline b.json", folder).out


def test_suppressed_and_locked_findings_are_not_accepted(dsguard: Dsguard, folder: Path) -> None:
    config = folder / "configs" / "ds.json"
    config.write_text(CONFIG.replace('"mine": 1,', '"mine": 1, // dsguard: ignore[unknown-key]'))
    (folder / "dsguard.toml").write_text('target = "0.19.8"\nlocked = ["misplaced-key"]\n')
    outcome = dsguard("baseline create configs", folder)
    assert outcome.out == "dsguard-baseline.json accepts 0 findings\n"
    (folder / "b.json").write_text(BASELINE)
    rules, hidden = found(dsguard, "check configs --baseline b.json", folder)
    assert "misplaced-key" in rules
    assert hidden == 0


def test_show(dsguard: Dsguard, folder: Path) -> None:
    (folder / "b.json").write_text(BASELINE)
    assert dsguard("baseline show --baseline b.json", folder).out == (
        "configs/ds.json\n"
        "  misplaced-key  /reduce_bucket_size\n"
        "  unknown-key    /mine\n"
        "\n"
        "b.json: 2 accepted findings\n"
    )


def test_fixes_leave_accepted_findings_alone(dsguard: Dsguard, folder: Path) -> None:
    (folder / "b.json").write_text(BASELINE)
    dsguard("check configs --baseline b.json --fix --unsafe-fixes", folder)
    assert (folder / "configs" / "ds.json").read_text() == CONFIG


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("baseline create configs --baseline b.json", 2, "--force writes it anew"),
        ("baseline create", 2, "name a config"),
        ("baseline create nowhere.json", 3, "nowhere.json: error: does not exist"),
        ("baseline create configs --baseline no/folder/b.json", 3, "cannot be written"),
        ("baseline prune configs", 2, "does not exist; write it with dsguard baseline create"),
        ("baseline show", 2, "does not exist"),
        ("baseline show --baseline configs/ds.json", 2, "is no baseline of dsguard"),
        ("check configs --baseline old.json", 2, "is no baseline of dsguard (Invalid enum value 0"),
        ("check configs --baseline broken.json", 2, "is no baseline of dsguard (Expecting"),
    ],
)
def test_wrong_usage(dsguard: Dsguard, folder: Path, line: str, code: int, words: str) -> None:
    (folder / "b.json").write_text(BASELINE)
    (folder / "old.json").write_text('{"version": 0, "findings": []}')
    (folder / "broken.json").write_text("{")
    outcome = dsguard(line, folder)
    assert outcome.code == code
    assert words in " ".join(outcome.err.split())
    assert (folder / "b.json").read_text() == BASELINE


def test_force(dsguard: Dsguard, folder: Path) -> None:
    (folder / "b.json").write_text("{}")
    (folder / "b.json").chmod(0o640)
    dsguard("baseline create configs --baseline b.json --force", folder)
    assert (folder / "b.json").read_text() == BASELINE
    assert (folder / "b.json").stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.name == "nt", reason="names of Unix are bytes")
def test_a_file_name_that_is_no_text(dsguard: Dsguard, folder: Path) -> None:
    name = os.fsdecode(b"d\xff\xc3\xa9.json")
    try:
        (folder / "configs" / name).write_text(CONFIG)
    except OSError:
        pytest.skip("this file system has no such names")
    assert dsguard("baseline create configs", folder).code == 0
    kept = (folder / "dsguard-baseline.json").read_text(encoding="utf-8")
    assert '"configs/d\\udcff\\u00e9.json"' in kept
    assert kept.startswith(BASELINE[:40])
    assert found(dsguard, "check configs --baseline dsguard-baseline.json", folder) == ([], 4)
    assert "d\\udcff" in dsguard("baseline show", folder).out
    (folder / "configs" / name).write_text('{"train_micro_batch_size_per_gpu": 4}')
    rules, accepted = found(dsguard, "check configs --baseline dsguard-baseline.json", folder)
    assert (rules.count("stale-baseline"), accepted) == (2, 2)
    assert "2 stale, 2 entries left" in dsguard("baseline prune configs", folder).out
    assert (folder / "dsguard-baseline.json").read_text(encoding="utf-8") == BASELINE


def test_a_name_that_no_file_can_have_is_stale(dsguard: Dsguard, folder: Path) -> None:
    entry = {"file": "a" * 5000, "rule": "no-batch-size", "pointer": ""}
    (folder / "b.json").write_text(json.dumps({"version": 1, "findings": [entry]}))
    outcome = dsguard("check configs --baseline b.json", folder)
    assert outcome.code < 2
    assert "stale-baseline" in outcome.out
    assert "1 stale" in dsguard("baseline prune configs --baseline b.json", folder).out


def test_the_places_of_stale_entries_are_found_at_once(
    dsguard: Dsguard, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line is read once, and not once for every entry: 8,000 took 22 seconds."""
    entries = [
        f'{{"file": "gone.json", "rule": "unknown-key", "pointer": "/k{n}"}}' for n in range(300)
    ]
    text = '{"version": 1, "findings": [\n  ' + ",\n  ".join(entries) + "\n ]}\n"
    (folder / "b.json").write_text(text)
    read: list[str] = []
    real = json.loads

    def count(text: str) -> object:
        read.append(text)
        return real(text)

    monkeypatch.setattr(json, "loads", count)
    outcome = dsguard("check configs --baseline b.json -o concise", folder)
    for number in (0, 7, 299):
        assert f"b.json:{number + 2}:3: warning[DSG013]" in outcome.out
    assert len(read) < 400
