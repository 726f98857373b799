"""Files that no other may take the place of, and names that are no files."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dsguard import writing
from tests.conftest import Dsguard

CONFIG = '{"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"cpu_offload": true}}\n'
FIX = "check ds.json --fix -q"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="owners, links and streams of Unix")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "ds.json"
    path.write_text(CONFIG)
    return path


def number(path: Path) -> int:
    """Stays the same where a file is written to, and not where another takes its place."""
    return path.stat().st_ino


def refuse_renaming(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def replace(self: Path, target: Path) -> Path:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "replace", replace)


def refuse_temporaries(monkeypatch: pytest.MonkeyPatch) -> None:
    def mkstemp(**options: object) -> tuple[int, str]:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("tempfile.mkstemp", mkstemp)


def refuse_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for one who is not the owner: the temporary file stays one of the wrong group."""
    group = {"of": 0}

    def owners(state: os.stat_result) -> tuple[int, int]:
        group["of"] += 1
        return 0, group["of"]

    monkeypatch.setattr(writing, "_owners", owners)
    monkeypatch.setattr(os, "chown", lambda *words: None)


@pytest.mark.parametrize("why", ["mounted", "folder", "owner"])
def test_a_file_that_none_may_take_the_place_of_is_written_to(
    dsguard: Dsguard, config: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """Mounted by itself into a container, in a read-only folder, or of another owner or group."""
    report = config.parent / "report.json"
    report.write_text("x" * 100_000)
    report.chmod(0o640)
    before = number(config), number(report)
    if why == "mounted":
        refuse_renaming(monkeypatch, errno.EBUSY)
    elif why == "folder":
        refuse_temporaries(monkeypatch)
    else:
        refuse_owners(monkeypatch)
    outcome = dsguard(f"{FIX} -o json=report.json", config.parent)
    assert outcome.code == 0, outcome.out + outcome.err
    assert "offload_optimizer" in json.loads(config.read_text())["zero_optimization"]
    assert json.loads(report.read_text())["version"] == 1
    assert (number(config), number(report)) == before
    assert stat.S_IMODE(report.stat().st_mode) == 0o640
    assert {path.name for path in config.parent.iterdir()} == {"ds.json", "report.json"}


def test_a_disk_that_fails_under_such_a_file(
    dsguard: Dsguard, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was there is there again."""
    refuse_temporaries(monkeypatch)
    truncated: list[int] = []
    truncate = os.ftruncate

    def full(handle: int, length: int) -> None:
        truncated.append(length)
        if len(truncated) == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        truncate(handle, length)

    monkeypatch.setattr(os, "ftruncate", full)
    outcome = dsguard(FIX, config.parent)
    assert outcome.code == 3
    assert "cannot be written: No space left on device" in outcome.out
    assert config.read_text() == CONFIG
    assert truncated[-1] == len(CONFIG)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_the_owner_of_a_shared_file_can_still_read_it(config: Path) -> None:
    """One of the group fixes a file of somebody else."""
    os.chown(config, 4001, 4003)
    config.chmod(0o660)
    os.chown(config.parent, 4001, 4003)
    config.parent.chmod(0o770)
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from dsguard.writing import rewrite\n"
        "import tempfile, random\n"
        "path, old = Path(sys.argv[1]), sys.argv[2]\n"
        "os.chdir(path.parent)\n"
        "os.setgroups([4003])\n"
        "os.setgid(4002)\n"
        "os.setuid(4002)\n"
        "rewrite(Path(path.name), 'ds.json', old, '{}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(config), CONFIG], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    state = config.stat()
    assert (state.st_uid, state.st_gid, stat.S_IMODE(state.st_mode)) == (4001, 4003, 0o660)
    assert config.read_text() == "{}"


def test_the_longest_name_can_be_fixed(dsguard: Dsguard, config: Path) -> None:
    longest = "n" * 250 + ".json"
    config.rename(config.parent / longest)
    outcome = dsguard(f"check {longest} --fix -q -o json={'o' * 255}", config.parent)
    assert outcome.code == 0
    assert {path.name for path in config.parent.iterdir()} == {longest, "o" * 255}


STREAMS = ["/dev/stdout", "/proc/self/fd/1", "/dev/fd/1", "link"]


@pytest.mark.parametrize("name", STREAMS)
def test_a_report_to_an_open_stream(config: Path, name: str) -> None:
    """What was in the file behind it stays, and so does the stream."""
    if not Path("/proc/self/fd").exists() and "proc" in name:
        pytest.skip("no /proc")
    (config.parent / "link").symlink_to("/dev/stdout")
    line = [sys.executable, "-m", "dsguard", "check", "ds.json", "-q", "-o", f"json={name}"]
    piped = subprocess.run(line, cwd=config.parent, stdout=subprocess.PIPE, check=False)
    assert piped.returncode == 0
    assert json.loads(piped.stdout)["version"] == 1
    log = config.parent / "log"
    with log.open("wb") as file:
        file.write(b"before\n")
        file.flush()
        before = number(log)
        subprocess.run(line, cwd=config.parent, stdout=file, check=True)
        subprocess.run(["sh", "-c", "echo after"], stdout=file, check=True)
    first, report, last = log.read_text().partition(piped.stdout.decode())
    assert (first, bool(report), last) == ("before\n", True, "after\n")
    assert number(log) == before
