"""Nothing that dsguard writes takes the place of what it has read, or of what it wrote before."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.conftest import Dsguard

CONFIG = '{"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"cpu_offload": true}}\n'
LAUNCH = "torchrun --nproc_per_node=8 train.py --deepspeed_config k.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "k.json").write_text(CONFIG)
    (tmp_path / "train.py").write_text("import deepspeed\n")
    (tmp_path / "own.py").write_text(
        "import deepspeed\n"
        "engine, *_ = deepspeed.initialize(model=model, config={'train_batch_size': 8})\n"
    )
    (tmp_path / "run.sh").write_text(LAUNCH + "\n")
    (tmp_path / "none.sh").write_text("echo\n")
    (tmp_path / "hosts").write_text("one slots=8\n")
    (tmp_path / "dsguard.toml").write_text('baseline = "kept.json"\n')
    (tmp_path / "kept.json").write_text('{"version": 1, "findings": []}\n')
    return tmp_path


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ("check k.json --output-file k.json -o json", "k.json"),
        ("check k.json --fix -q -o json=k.json", "k.json"),
        ("check k.json -o json=link.json", "k.json"),
        ("check link.json -o json=./k.json", "k.json"),
        ("check k.json -o json=name.json", "k.json"),
        ("check . -o json=k.json", "k.json"),
        ("check . -o json=own.py", "own.py"),
        ("check own.py -o json=own.py", "own.py"),
        ("check run.sh -q -o json=run.sh", "run.sh"),
        ("check run.sh -q -o json=k.json", "k.json"),
        ("check run.sh -q -o json=train.py", "train.py"),
        ("check none.sh -q -o json=none.sh", "none.sh"),
        ("check k.json --hostfile hosts -o json=hosts -- deepspeed train.py", "hosts"),
        ("check k.json -o json=hosts -- deepspeed --hostfile hosts train.py", "hosts"),
        ("check k.json -o json=dsguard.toml", "dsguard.toml"),
        ("check k.json -o json=kept.json", "kept.json"),
        ("check k.json --write-contract k.json", "k.json"),
        (f"check -q --write-contract train.py -- {LAUNCH}", "train.py"),
        (f"run -q --dry-run --write-contract train.py -- {LAUNCH}", "train.py"),
        ("baseline create k.json --baseline k.json --force", "k.json"),
        ("baseline create k.json --baseline train.py --force", "train.py"),
        ("baseline create k.json --baseline hosts --force", "hosts"),
    ],
)
def test_what_was_read_is_not_written_over(
    dsguard: Dsguard, folder: Path, line: str, lost: str
) -> None:
    if os.name != "nt":
        (folder / "link.json").symlink_to("k.json")
        (folder / "name.json").hardlink_to(folder / "k.json")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    outcome = dsguard(line, folder)
    assert outcome.code == 2
    assert "would be lost" in outcome.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before, lost


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("check k.json -q -o json=out.json", 0),
        ("check . -q -o json=out.json", 0),  # where the second check finds it
        (f"check -q --write-contract out.json -- {LAUNCH}", 0),
        ("baseline create k.json --baseline out.json --force", 0),
    ],
)
def test_what_dsguard_wrote_is_written_anew(
    dsguard: Dsguard, folder: Path, line: str, code: int
) -> None:
    for _ in range(2):
        outcome = dsguard(line, folder)
        assert outcome.code == code, outcome.err
    assert json.loads((folder / "out.json").read_text())


def test_a_damaged_baseline_is_written_anew(dsguard: Dsguard, folder: Path) -> None:
    """As two branches leave one that both have changed."""
    damaged = '<<<<<<< ours\n{"version": 1, "findings": []}\n=======\n>>>>>>> theirs\n'
    for text in (damaged, ""):
        (folder / "out.json").write_text(text)
        assert dsguard("baseline create k.json --baseline out.json --force", folder).code == 0
        assert json.loads((folder / "out.json").read_text())["version"] == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("check k.json -o json=out -o text={folder}/out", "json and text cannot both go"),
        ("check k.json -o json=out -o text=link", "json and text cannot both go"),
        ("check k.json -o json=new -o text=./sub/../new", "json and text cannot both go"),
        ("check k.json -o json=out --write-contract ./out", "a report goes to"),
        ("check k.json -o json=new --write-contract {folder}/new", "a report goes to"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="links of Unix")
def test_two_outputs_in_one_file(dsguard: Dsguard, folder: Path, line: str, said: str) -> None:
    (folder / "out").write_text("old")
    (folder / "sub").mkdir()
    (folder / "link").symlink_to("out")
    outcome = dsguard(line.format(folder=folder), folder)
    assert outcome.code == 2
    assert said in outcome.err.replace("\n", " ")
    assert (folder / "out").read_text() == "old"
    assert not (folder / "new").exists()


@pytest.mark.skipif(os.name == "nt", reason="links of Unix")
def test_a_link_to_itself_is_no_place_for_a_report(dsguard: Dsguard, folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    outcome = dsguard("check k.json -o json=loop", folder)
    assert outcome.code == 3
    assert "Too many levels of symbolic links" in outcome.err
    assert (folder / "loop").is_symlink()


def test_one_file_by_several_spellings_is_checked_once(dsguard: Dsguard, folder: Path) -> None:
    names = f"k.json ./k.json {folder / 'k.json'} sub/../k.json k.json"
    (folder / "sub").mkdir()
    outcome = dsguard(f"check {names} -o json", folder)
    assert [check["config"] for check in json.loads(outcome.out)["checks"]] == ["k.json"]
    (folder / "sub" / "ds.json").write_text(CONFIG)
    outcome = dsguard("check sub sub/ ./sub/. -o json", folder)
    assert [check["config"] for check in json.loads(outcome.out)["checks"]] == ["sub/ds.json"]
