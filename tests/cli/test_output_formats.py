"""``--output-format``: several reports at once, to standard output and to files."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from tests.conftest import Dsguard
from tests.sarif import read_sarif

CHECK = "check ds.json --target 0.19.8"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 0}\n')
    return tmp_path


def test_several_at_once(dsguard: Dsguard, folder: Path) -> None:
    line = f"{CHECK} -o concise -o sarif=out.sarif -o json=out.json -o github=out.txt"
    outcome = dsguard(line, folder)
    assert outcome.code == 1
    assert outcome.out == dsguard(f"{CHECK} -o concise", folder).out
    assert read_sarif((folder / "out.sarif").read_text())["results"]
    assert json.loads((folder / "out.json").read_text())["summary"]["error"] == 1
    assert (folder / "out.txt").read_text() == dsguard(f"{CHECK} -o github", folder).out


def test_a_file_alone_leaves_standard_output_empty(dsguard: Dsguard, folder: Path) -> None:
    outcome = dsguard(f"{CHECK} --output-format sarif=out.sarif", folder)
    assert (outcome.code, outcome.out) == (1, "")
    assert (folder / "out.sarif").read_text() == dsguard(f"{CHECK} -o sarif", folder).out


def test_a_dash_is_standard_output(dsguard: Dsguard, folder: Path) -> None:
    assert dsguard(f"{CHECK} -o json=-", folder) == dsguard(f"{CHECK} -o json", folder)


def test_output_file_takes_the_one_without_a_file(dsguard: Dsguard, folder: Path) -> None:
    outcome = dsguard(f"{CHECK} -o sarif=a.sarif -o concise --output-file b.txt", folder)
    assert outcome.out == ""
    assert (folder / "b.txt").read_text().startswith("ds.json:1:")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("-o srif", "no format is called 'srif'; did you mean sarif?"),
        ("-o xml", "no format is called 'xml'; they are: text, concise, json, sarif, github"),
        ("-o sarif=", "'sarif=' names no file"),
        ("-o text -o json", "text and json cannot both go to standard output"),
        ("-o text=a -o json=a", "text and json cannot both go to a"),
        ("-o sarif=a --output-file b", "every --output-format names a file of its own"),
        ("-o sarif=no/such/folder/a", "cannot write no/such/folder/a: No such file"),
        ("-o sarif=.", "cannot write .: Is a directory"),
    ],
)
def test_wrong_usage(dsguard: Dsguard, folder: Path, options: str, words: str) -> None:
    before = sorted(folder.iterdir())
    outcome = dsguard(f"{CHECK} {options}", folder)
    assert outcome.code == 2
    assert words in " ".join(outcome.err.replace("│", " ").split())
    assert sorted(folder.iterdir()) == before


def test_an_existing_file_keeps_its_mode_and_a_link_is_followed(
    dsguard: Dsguard, folder: Path
) -> None:
    report = folder / "report.json"
    report.write_text("old")
    report.chmod(0o640)
    (folder / "link.json").symlink_to(report)
    dsguard(f"{CHECK} -o json=link.json", folder)
    assert (folder / "link.json").is_symlink()
    assert json.loads(report.read_text())["version"] == 1
    assert stat.S_IMODE(report.stat().st_mode) == 0o640


def test_a_new_file_has_the_mode_that_the_user_gives_new_files(
    dsguard: Dsguard, folder: Path
) -> None:
    before = os.umask(0o027)
    try:
        dsguard(f"{CHECK} -o json=report.json", folder)
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "report.json").stat().st_mode) == 0o640


def test_a_failed_write_leaves_the_old_report(
    dsguard: Dsguard, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "report.json").write_text("old")

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    outcome = dsguard(f"{CHECK} -o json=report.json", folder)
    assert outcome.code == 3
    assert "No space left on device" in outcome.err
    assert sorted(p.name for p in folder.iterdir()) == ["ds.json", "report.json"]
    assert (folder / "report.json").read_text() == "old"


def test_a_device_is_written_to(dsguard: Dsguard, folder: Path) -> None:
    assert dsguard(f"{CHECK} -o json={os.devnull}", folder).code == 1
    assert not Path(os.devnull).is_file()
