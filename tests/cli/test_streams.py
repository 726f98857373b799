"""Readers that go away, full disks, no home and no terminal: exit code and files stay right."""

from __future__ import annotations

import errno
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dsguard.__main__ import main as start_of_program
from dsguard.cli import app
from tests.conftest import Dsguard
from tests.records.made import header, step, summary, write
from tests.sarif import read_sarif

GOOD = '{"train_micro_batch_size_per_gpu": 1}\n'
BAD = '{"train_micro_batch_size_per_gpu": 0}\n'
FIXABLE = '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"cpu_offload": true}}\n'

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes and devices of Unix")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("good.json", GOOD), ("bad.json", BAD), ("fix.json", FIXABLE)):
        (tmp_path / name).write_text(text)
    write(tmp_path / "run.jsonl", header(), step(1), summary())
    return tmp_path


def start(line: str, folder: Path, **streams: object) -> subprocess.CompletedProcess[str]:
    """The program with nothing in its environment: no home, no terminal, no PATH."""
    return subprocess.run(
        [sys.executable, "-m", "dsguard", *shlex.split(line)],
        cwd=folder,
        env={},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=120,
        **streams,  # type: ignore[call-overload]
    )


def gone() -> int:
    """A pipe whose reader has seen enough."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.parametrize(
    ("line", "code", "written"),
    [
        ("check good.json", 0, ()),
        (
            "check bad.json -o text -o sarif=out.sarif -o json=out.json",
            1,
            ("out.sarif", "out.json"),
        ),
        ("report run.jsonl --html page.html", 0, ("page.html",)),
        ("baseline create bad.json --baseline kept.json", 0, ("kept.json",)),
    ],
)
def test_a_reader_that_has_seen_enough(
    folder: Path, line: str, code: int, written: tuple[str, ...]
) -> None:
    """As ``| head`` does: the answer is not wrong because of it, and files are still written."""
    pipe = gone()
    try:
        outcome = start(line, folder, stdout=pipe)
    finally:
        os.close(pipe)
    assert outcome.returncode == code
    assert "rror" not in outcome.stderr
    assert {path.name for path in folder.iterdir()} == {
        "good.json", "bad.json", "fix.json", "run.jsonl", *written
    }  # fmt: skip


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is a device of Linux")
@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("--help", ()),
        ("check bad.json -o sarif=out.sarif -o concise", ("out.sarif",)),
        ("report run.jsonl --html page.html", ("page.html",)),
    ],
)
def test_a_full_disk_under_standard_output(
    folder: Path, line: str, written: tuple[str, ...]
) -> None:
    with open("/dev/full", "w") as full:
        outcome = start(line, folder, stdout=full)
    assert outcome.returncode == 3
    last = outcome.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    assert last.endswith("No space left on device")
    for name in written:
        assert (folder / name).stat().st_size > 0
    if "out.sarif" in written:
        assert read_sarif((folder / "out.sarif").read_text())["results"]


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """A disk that fails with the error of this number, when what was written is to be kept."""
    failing: dict[str, int] = {}

    def fsync(handle: int) -> None:
        if failing:
            raise OSError(failing["errno"], os.strerror(failing["errno"]))

    monkeypatch.setattr("dsguard.writing.os.fsync", fsync)
    return failing


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("check fix.json --fix", 3),
        ("check bad.json -o json=old", 3),
        ("check bad.json -o text -o sarif=new", 3),
        ("check good.json --write-contract old", 3),
        ("baseline create bad.json --baseline old --force", 3),
        ("baseline create bad.json --baseline new", 3),
        ("report run.jsonl --html old", 3),
        ("report run.jsonl --html new", 3),
    ],
)
def test_a_disk_that_fails_under_a_file(
    dsguard: Dsguard, folder: Path, disk: dict[str, int], line: str, code: int, number: int
) -> None:
    """What was there is whole, nothing half is left, and the exit code is not that of a success."""
    (folder / "old").write_text("{}")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    disk["errno"] = number
    outcome = dsguard(line, folder)
    assert outcome.code == code
    assert os.strerror(number) in outcome.out + outcome.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    disk.clear()
    assert dsguard(line, folder).code in (0, 1)


def test_a_fault_of_the_program_is_no_finding(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python exits with 1 after a traceback, which would say that an error was found."""

    def fail(commands: object) -> object:
        raise RuntimeError("planted\x1b[2J")

    monkeypatch.setattr(app, "app", fail)
    monkeypatch.setattr(sys, "argv", ["dsguard", "check"])
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == 3
    said = capsys.readouterr().err
    assert said.startswith("Error: dsguard crashed (RuntimeError: planted\\x1b[2J, ")
    assert "this is a fault of dsguard" in said


def test_no_standard_streams_at_all(folder: Path) -> None:
    """As a daemon starts programs; files are the only way to answer."""
    line = f"{shlex.quote(sys.executable)} -m dsguard check bad.json -o json=out.json"
    command = f"{line} <&- >&- 2>&-"
    outcome = subprocess.run(["sh", "-c", command], cwd=folder, check=False, timeout=120)
    assert outcome.returncode == 1
    assert json.loads((folder / "out.json").read_text())["summary"]["error"] == 1


def test_who_measures_the_program_gets_the_measurement(folder: Path) -> None:
    """It ends at once elsewhere, without the end that a profiler waits for."""
    measured = folder / "measured"
    words = ["-m", "cProfile", "-o", str(measured), "-m", "dsguard", "check", "good.json"]
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "No problems found" in done.stdout) == (0, True), done.stderr
    assert measured.stat().st_size


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python has no sys.monitoring")
def test_who_monitors_the_program_gets_its_end(folder: Path) -> None:
    """As cProfile does from Python 3.12 on, and coverage."""
    monitored = (
        "import atexit, sys\n"
        "sys.monitoring.use_tool_id(sys.monitoring.COVERAGE_ID, 'measuring')\n"
        "atexit.register(print, 'ended')\n"
        "from dsguard.__main__ import main\n"
        "sys.argv = ['dsguard', 'check', 'good.json']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", monitored], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "ended"), done.stderr


@pytest.mark.parametrize("command", ["check good.json", "facts good.json", "rules", "--version"])
def test_everything_is_written_before_the_end(folder: Path, command: str) -> None:
    into = folder / "out.txt"
    with into.open("w") as file:
        done = start(command, folder, stdout=file)
    assert done.returncode == 0
    assert into.read_text().endswith("\n")


CLOSED = "Error: cannot write to standard output: it is closed\n"


@pytest.mark.parametrize("line", ["check bad.json", "--version", "--help", "check -h", "rules"])
def test_a_closed_standard_output(folder: Path, line: str) -> None:
    """Nobody has got the answer, and nothing else would say so."""
    words = ["sh", "-c", f"{shlex.quote(sys.executable)} -m dsguard {line} >&-"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, CLOSED)


@pytest.mark.parametrize("stream", ["2>/dev/full", "2>&-", "2>&1 | sleep 0"])
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("check --nosuch", 2),
        ("diff missing.json other.json", 3),
        ("check - --fix < fix.json", 0),
        ("check - --fix < bad.json", 1),
        ("check fix.json --diff", 1),
        ("server < /dev/null > /dev/null", 0),
        ("run -- sh -c 'exit 7'", 7),
        ("-h", 0),
        ("--version", 0),
    ],
)
def test_standard_error_that_takes_nothing(folder: Path, line: str, code: int, stream: str) -> None:
    """What is said beside the answer changes no exit code, and nor does a reader that goes away."""
    if "full" in stream and not Path("/dev/full").exists():
        pytest.skip("/dev/full is a device of Linux")
    ours = f"{shlex.quote(sys.executable)} -m dsguard {line}"
    before, pipe, after = stream.partition(" | ")
    command = f"{{ {ours}; }} {before}; echo $? > code"
    command = f"({command}){pipe}{after}" if pipe else command
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert (folder / "code").read_text() == f"{code}\n"
    if "fix.json" in line and "--fix" in line and not pipe:
        assert "offload_optimizer" in done.stdout


@pytest.mark.parametrize(("closed", "name"), [("<&-", "input"), (">&-", "output")])
def test_a_server_without_an_editor(folder: Path, closed: str, name: str) -> None:
    pytest.importorskip("pygls", reason="the language server needs pygls")
    words = ["sh", "-c", f"{shlex.quote(sys.executable)} -m dsguard server {closed}"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    said = f"Error: standard {name} is closed, over which an editor speaks\n"
    assert (done.returncode, done.stderr) == (3, said)


def test_ctrl_c_before_the_program_is_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Loading it takes a moment, in which a traceback would be shown."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dsguard.cli.streams.guard_streams", interrupt)
    with pytest.raises(SystemExit) as ended:
        start_of_program()
    assert ended.value.code == 130
    assert capsys.readouterr().err == ""
