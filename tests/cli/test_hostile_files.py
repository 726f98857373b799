"""Files that never end, lead elsewhere or would run: refused, said, and not opened."""

from __future__ import annotations

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Dsguard
from tests.fuzz.effects import only_reading

pytestmark = pytest.mark.skipif(
    not hasattr(os, "mkfifo") or not Path("/dev/zero").exists(), reason="pipes and devices of Unix"
)

CONFIG = '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}\n'
DEEP = 1200
ENDLESS = ("pipe", "device")
"""Opening the first one waits for a writer for ever; reading the other never ends."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ds.json").write_text(CONFIG)
    (tmp_path / "train.py").write_text("")
    (tmp_path / "hosts").write_text("h0 slots=1\nh1 slots=1\n")
    return tmp_path


def endless(path: Path, kind: str) -> None:
    """Put a pipe there, or a link to a device."""
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")


@pytest.mark.parametrize("kind", ENDLESS)
@pytest.mark.parametrize(
    ("name", "line", "code"),
    [
        ("x.json", "check x.json", 3),
        ("x.yaml", "check x.yaml", 3),
        ("x.py", "check x.py", 3),
        ("x.sh", "check x.sh", 3),
        ("x.toml", "check ds.json --settings x.toml", 2),
        ("x.json", "check ds.json --baseline x.json", 2),
        ("x.json", "baseline show --baseline x.json", 2),
        ("dsguard.toml", "check ds.json", 0),
        ("pyproject.toml", "check ds.json", 0),
        ("requirements.txt", "check ds.json", 0),
        ("uv.lock", "check ds.json", 0),
        ("x.json", "diff x.json x.json", 3),
        ("dsguard.json", "diff . .", 3),
        ("x.jsonl", "report x.jsonl", 3),
        ("x.json", "facts x.json", 3),
        ("x.json", "check -- deepspeed --num_gpus 1 train.py --deepspeed_config x.json", 1),
        ("x.py", "check -- deepspeed --num_gpus 1 x.py --deepspeed_config ds.json", 0),
        ("x", "check -- deepspeed --hostfile x train.py --deepspeed_config ds.json", 1),
        (
            ".deepspeed_env",
            "check -- deepspeed --hostfile hosts t.py --deepspeed_config ds.json",
            0,
        ),
        ("x.yaml", "check -- accelerate launch --config_file x.yaml train.py", 1),
        ("x.yaml", "check -- axolotl train x.yaml", 1),
        ("x.sh", "check -- bash x.sh", 3),
        ("x.sh", "check -- sbatch x.sh", 3),
    ],
)
def test_what_never_ends_is_not_opened(
    dsguard: Dsguard, folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str,
    line: str, code: int,
) -> None:  # fmt: skip
    monkeypatch.setattr("dsguard.facts.target.installed", lambda package: None)  # ask the pins
    endless(folder / name, kind)
    with only_reading(folder):
        outcome = dsguard(line, folder)
    assert outcome.code == code, outcome.out + outcome.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("check x.json", "x.json: cannot be read: reading it would wait"),
        ("check x.py", "x.py: cannot be read: reading it would wait"),
        ("check -- deepspeed --num_gpus 1 x.py --deepspeed_config ds.json", ""),
        ("report x.jsonl", "x.jsonl: is empty"),
    ],
)
def test_what_says_that_it_is_a_regular_file_is_not_waited_for(
    dsguard: Dsguard, folder: Path, monkeypatch: pytest.MonkeyPatch, line: str, said: str
) -> None:
    """``/proc/kmsg`` does, and a pipe may have taken the place of a file since the look at it."""
    pipes = [folder / name for name in ("x.json", "x.py", "x.jsonl")]
    for pipe in pipes:
        os.mkfifo(pipe)
    writers = [os.open(pipe, os.O_RDWR) for pipe in pipes]
    monkeypatch.setattr(stat, "S_ISREG", lambda mode: not stat.S_ISDIR(mode))
    waiting = signal.signal(signal.SIGALRM, _waited)
    signal.alarm(30)
    try:
        outcome = dsguard(line, folder)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, waiting)
        for writer in writers:
            os.close(writer)
    assert outcome.code == (3 if said else 0)
    assert said in outcome.out + outcome.err


def _waited(number: int, frame: object) -> None:
    raise TimeoutError("it was waited for")


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_contract_names_the_files_that_can_be_read(
    dsguard: Dsguard, folder: Path, kind: str
) -> None:
    (folder / "hosts").unlink()
    endless(folder / "hosts", kind)
    launch = "deepspeed --hostfile hosts train.py --deepspeed_config ds.json"
    dsguard(f"check --write-contract kept.json -- {launch}", folder)
    inputs = json.loads((folder / "kept.json").read_text())["inputs"]
    assert {one["file"] for one in inputs} == {"ds.json", "train.py"}


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_record_beside_which_another_rank_never_ends(
    dsguard: Dsguard, folder: Path, kind: str
) -> None:
    from tests.records.made import header, step, write

    write(folder / "run.jsonl", header(world_size=2), step(1))
    endless(folder / "run.rank1.jsonl", kind)
    outcome = dsguard("report run.jsonl", folder)
    assert (outcome.code, outcome.err) == (3, "Error: run.rank1.jsonl: is not a regular file\n")


def test_a_folder_with_all_of_it(dsguard: Dsguard, folder: Path) -> None:
    for kind in ENDLESS:
        endless(folder / f"ds_config_{kind}.json", kind)
        endless(folder / f"other_{kind}.json", kind)
    (folder / "ds_config_loop.json").symlink_to("ds_config_loop.json")
    (folder / "ds_config_folder.json").mkdir()
    (folder / "up").symlink_to("..")
    (folder / "root").symlink_to("/")
    with only_reading(folder):
        outcome = dsguard("check . -o json", folder)
    report = json.loads(outcome.out)
    assert outcome.code == 3
    assert [check["config"] for check in report["checks"]] == ["ds.json"]
    text = dsguard("check .", folder).out
    assert "ds_config_pipe.json: is not a regular file" in text
    assert "ds_config_device.json: is a link that leads out of this folder" in text
    assert "ds_config_loop.json: " in text
    assert "other_" not in text


def test_a_link_out_of_a_searched_folder_is_not_followed(dsguard: Dsguard, folder: Path) -> None:
    """The report quotes lines, and a pull request must not choose whose."""
    (folder / "secret").write_text("token = hunter2\n")
    (folder / "planted").mkdir()
    (folder / "planted" / "ds_config.json").symlink_to("../secret")
    (folder / "planted" / "inside.json").write_text(CONFIG)
    (folder / "planted" / "alias.json").symlink_to("inside.json")
    with only_reading(folder / "planted"):
        outcome = dsguard("check planted", folder)
    assert outcome.code == 3
    assert "planted/ds_config.json: is a link that leads out of this folder" in outcome.out
    assert "hunter2" not in outcome.out
    assert "2 files" in outcome.out
    assert dsguard("check planted/ds_config.json", folder).code == 1


@pytest.fixture
def deep(folder: Path) -> Iterator[Path]:
    """A folder below more folders than Python calls, which nobody else could take away again."""
    here = Path.cwd()
    os.chdir(folder)
    for _ in range(DEEP):
        os.mkdir("d")  # noqa: PTH102 - the whole path is too long for one call
        os.chdir("d")
    Path("ds.json").write_text(CONFIG)
    os.chdir(here)
    yield folder.joinpath(*["d"] * DEEP)
    # shutil.rmtree, which pytest takes, calls itself as well.
    subprocess.run(["rm", "-rf", str(folder / "d")], check=True)


def test_folders_deeper_than_python_calls(dsguard: Dsguard, folder: Path, deep: Path) -> None:
    outcome = dsguard("check . -o json", folder)
    configs = [check["config"] for check in json.loads(outcome.out)["checks"]]
    assert configs == [str((deep / "ds.json").relative_to(folder)), "ds.json"]


def test_a_folder_that_no_path_reaches(dsguard: Dsguard, folder: Path) -> None:
    """Something may lie in it, so the answer is not whole."""
    here, name = Path.cwd(), "n" * 200
    os.chdir(folder)
    for _ in range(25):
        Path(name).mkdir()
        os.chdir(name)
    Path("ds.json").write_text('{"train_micro_batch_size_per_gpu": 0}')
    os.chdir(here)
    try:
        outcome = dsguard("check . -o json", folder)
    finally:
        os.chdir(here)
        subprocess.run(["rm", "-rf", str(folder / name)], check=True)
    assert outcome.code == 3
    assert [one["message"] for one in json.loads(outcome.out)["failures"]] == [
        "lies deeper than a path can say"
    ]


PLANTED = {
    "run.sh": "touch planted; X=$(touch planted) deepspeed --num_gpus $(touch planted) train.py "
    "--deepspeed_config `touch planted; echo ds.json` $((planted[$(touch planted)]))\n",
    "Makefile": "X := $(shell touch planted)\nt:\n\tdeepspeed t.py --deepspeed_config ds.json\n",
    "README.md": "```bash\n$(touch planted)\ndeepspeed t.py --deepspeed_config ds.json\n```\n",
    "train.py": "import os, deepspeed\nos.system('touch planted')\nopen('planted', 'w')\n"
    "deepspeed.initialize(model=m, config=__import__('os').system('touch planted'))\n",
    "train.ipynb": json.dumps(
        {"cells": [{"cell_type": "code", "source": ["!touch planted\n", "import deepspeed\n",
         "deepspeed.initialize(m, config=open('planted', 'w'))"]}], "nbformat": 4, "metadata": {}}
    ),
    "tag.yaml": "base_model: !!python/object/apply:os.system ['touch planted']\ndatasets: []\n",
    "new.yaml": "base_model: !!python/object/new:os.system [touch planted]\ndatasets: []\n",
    "include.yaml": "base_model: !include ../secret.yaml\ndatasets: []\n",
    "path.yaml": "base_model: x\ndatasets: []\ndeepspeed: $(touch planted)\n",
    "bomb.yaml": "a: &a [x, x]\n"
    + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{f'*{chr(97 + i)}, ' * 9}]\n" for i in range(20)),
    "hosts": "$(touch planted) slots=2\n`touch planted` slots=3\n",
    ".deepspeed_env": "X=$(touch planted)\n",
    "dsguard.toml": '[[job]]\nname = "a"\nlaunch = "$(touch planted) deepspeed train.py"\n',
    "conftest.py": "open('planted', 'w')\n",
    "sitecustomize.py": "open('planted', 'w')\n",
    "deepspeed.py": "open('planted', 'w')\n",
    "torch.py": "open('planted', 'w')\n",
}  # fmt: skip


@pytest.mark.parametrize("command", ["check", "facts"])
def test_nothing_that_is_planted_runs(dsguard: Dsguard, folder: Path, command: str) -> None:
    """Whoever opens a pull request writes all of these; the module names shadow real packages."""
    for name, text in PLANTED.items():
        (folder / name).write_text(text)
    dsguard(command, folder)
    pytest.importorskip("ruamel.yaml")
    before = sorted(folder.iterdir())
    launch = "deepspeed --hostfile hosts --launcher pdsh train.py --deepspeed_config ds.json"
    named = [name for name in PLANTED if not name.endswith((".toml", "_env", "hosts"))]
    lines = [f"{command} {name}" for name in named] + [command, f"{command} -- {launch}"]
    lines += [f"{command} -- axolotl train {name}" for name in named if name.endswith("yaml")]
    with only_reading(folder):
        outcomes = [dsguard(line, folder) for line in lines]
    assert sorted(folder.iterdir()) == before
    assert {outcome.code for outcome in outcomes} <= {0, 1, 2, 3}


def test_the_launch_keeps_its_words(dsguard: Dsguard, folder: Path) -> None:
    """No shell ever sees a launch command: what looks like one is a word."""
    words = ["$(touch planted)", "`touch planted`", "; touch planted", "| touch planted", "\n", "*"]
    launch = f"deepspeed train.py --deepspeed_config ds.json {shlex.join(words)}"
    with only_reading(folder):
        outcome = dsguard(f"check -o json -- {launch}", folder)
    (check,) = json.loads(outcome.out)["checks"]
    assert shlex.split(check["launch"]) == shlex.split(launch)


@pytest.mark.parametrize(
    "value",
    ["1e400", "-1e400", "9" * 400, "9" * 5000, "1" + "0" * 308 + ".0", "1e-400", "0x10", "٣",
     "NaN", "-Infinity", "1" * 4300, "[" * 490 + "]" * 490, '"\\ud800"'],
    ids=range(13),
)  # fmt: skip
def test_numbers_that_no_machine_holds(dsguard: Dsguard, folder: Path, value: str) -> None:
    keys = ("train_batch_size", "gradient_clipping", "steps_per_print", "zero_optimization")
    text = ", ".join(f'"{key}": {value}' for key in keys)
    (folder / "ds.json").write_text(f"{{{text}}}", encoding="utf-8")
    for form in ("text", "json", "sarif", "github", "concise"):
        outcome = dsguard(f"check ds.json --world-size 3 -o {form}", folder)
        assert outcome.code == 1
        assert "internal-error" not in outcome.out


AS_NOBODY = """
import os, sys
from dsguard.cli.app import main

def run(*words):
    sys.argv = ["dsguard", *words]
    try:
        main()
    except SystemExit as end:
        return end.code

run("check", "good.json")  # imports what another user may not be able to
run("check", "nowhere.json")
print("----")
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
names = (".", "closed", "ds_config_closed.json", "good.json")
print("CODES", *(run("check", name) for name in names))
"""


@pytest.mark.skipif(os.name == "nt", reason="modes of Unix")
def test_what_another_user_may_not_read() -> None:
    """Said, with the rest checked; a folder that cannot be looked into may hold anything."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "good.json").write_text('{"train_micro_batch_size_per_gpu": 1}\n')
        (folder / "ds_config_closed.json").write_text('{"train_micro_batch_size_per_gpu": 0}\n')
        (folder / "closed").mkdir()
        for closed in ("closed", "ds_config_closed.json"):
            (folder / closed).chmod(0)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        (folder / "closed").chmod(0o755)
    told = done.stdout.partition("----")[2]
    assert told.splitlines()[-1] == "CODES 3 3 3 0", done
    assert told.count("closed: may not be read by this user") == 2
    assert told.count("ds_config_closed.json: may not be read by this user") == 2
    assert "in 1 file, the answer is incomplete" in told
