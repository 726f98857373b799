"""``dsguard run`` as a program: what it starts, what it stops, how it gets out of the way."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import FIXTURES

STORY = FIXTURES / "runs" / "accumulation-ignored"
LAUNCH = (STORY / "launch.txt").read_text(encoding="utf-8").strip()
REPAIRED = LAUNCH.replace("ds_config.json", "ds_config.repaired.json")


def start(
    line: str, folder: Path = STORY, stdin: bytes = b"", **variables: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "dsguard", *shlex.split(line)],
        cwd=folder,
        input=stdin,
        capture_output=True,
        env={**_clean(), **variables},
        check=False,
        timeout=120,
    )


def _clean() -> dict[str, str]:
    hidden = ("RANK", "WORLD_SIZE", "SLURM_", "OMPI_", "PMI_", "DSGUARD_CONTRACT", "NO_COLOR")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)}


def stand_in(folder: Path, name: str, body: str) -> str:
    """A program of that name for a launcher, which prints how it was started."""
    program = folder / name
    program.write_text(f"#!{sys.executable}\n{body}", encoding="utf-8")
    program.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


TELL = """
import json, os, sys
print(json.dumps({"argv": sys.argv[1:], "contract": os.environ.get("DSGUARD_CONTRACT"),
                  "path": os.environ.get("PYTHONPATH"), "stdin": sys.stdin.read()}))
sys.exit(int(os.environ.get("CODE", "0")))
"""


def test_a_bad_launch_is_not_started(tmp_path: Path) -> None:
    path = stand_in(tmp_path, "torchrun", "raise SystemExit('started')")
    done = start(f"run -- {LAUNCH}", PATH=path)
    assert done.returncode == 1
    assert done.stdout == b""
    said = done.stderr.decode()
    assert "error[DSG203]" in said
    assert "One optimizer step trains on 4 samples" in said
    assert said.splitlines()[-1].startswith("dsguard: not started")


def test_a_good_launch_gets_its_words_and_streams_untouched(tmp_path: Path) -> None:
    path = stand_in(tmp_path, "torchrun", TELL)
    odd = "--note 'two  words' '$HOME' '*' '' 'a;b' \"it's\""
    done = start(f"run -- {REPAIRED} {odd}", PATH=path, CODE="7", stdin=b"typed in\n")
    assert done.returncode == 7
    told = json.loads(done.stdout)
    assert told["argv"] == shlex.split(f"{REPAIRED} {odd}")[1:]
    assert told["stdin"] == "typed in\n"
    contract = json.loads(told["contract"])
    assert contract["facts"]["gradient_accumulation_steps"]["value"] == 8
    assert {one["file"] for one in contract["inputs"]} == {"ds_config.repaired.json", "train.py"}
    assert b"One optimizer step trains on 32 samples" in done.stderr


@pytest.mark.parametrize("level", ["warning", "never"])
def test_fail_on_decides_what_stops_it(level: str, tmp_path: Path) -> None:
    path = stand_in(tmp_path, "torchrun", "print('started')")
    done = start(f"run --fail-on {level} -- {LAUNCH}", PATH=path)
    assert (done.returncode, done.stdout) == ((0, b"started\n") if level == "never" else (1, b""))


def test_a_dry_run_starts_nothing(tmp_path: Path) -> None:
    path = stand_in(tmp_path, "torchrun", "print('started')")
    done = start(f"run --dry-run -- {REPAIRED}", PATH=path)
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.decode().splitlines()[-1] == f"dsguard: would start: {REPAIRED}"


def test_the_contract_is_kept_in_a_file(tmp_path: Path) -> None:
    path = stand_in(tmp_path, "torchrun", TELL)
    kept = tmp_path / "run.dsguard.json"
    done = start(f"run -q --write-contract {kept} -- {REPAIRED}", PATH=path)
    assert json.loads(done.stdout)["contract"] == str(kept)
    assert json.loads(kept.read_text())["contract"] == 1
    assert done.stderr == b""


def test_variables_before_the_command_are_set_for_it(tmp_path: Path) -> None:
    stand_in(tmp_path, "torchrun", TELL)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = start(f"run -q -- PATH={path} CODE=3 {REPAIRED}")
    assert done.returncode == 3


def test_a_contract_of_another_launch_holds_nobody(tmp_path: Path) -> None:
    """Two launches in one script make no contract, so none is left over from outside either."""
    path = stand_in(tmp_path, "echo_launch", TELL)
    done = start("run -q -- echo_launch", PATH=path, DSGUARD_CONTRACT='{"contract": 1}')
    assert json.loads(done.stdout)["contract"] is None


def test_a_guard_is_asked_for_by_the_python_path(tmp_path: Path) -> None:
    path = stand_in(tmp_path, "torchrun", TELL)
    done = start(f"run -q --guard -- {REPAIRED}", PATH=path, PYTHONPATH="/elsewhere")
    first, *rest = json.loads(done.stdout)["path"].split(os.pathsep)
    assert (Path(first) / "sitecustomize.py").is_file()
    assert rest == ["/elsewhere"]


def test_an_incomplete_check_stops_only_where_it_is_asked_to(tmp_path: Path) -> None:
    path = stand_in(tmp_path, "mystery", "print('started')")
    assert start("run -- mystery --x", PATH=path).stdout == b"started\n"
    closed = start("run --fail-closed -- mystery --x", PATH=path)
    assert (closed.returncode, closed.stdout) == (3, b"")
    assert b"names no DeepSpeed config" in closed.stderr


CRASH = """
import sys
import dsguard.cli.commands.run as run
def crash(*args, **more): raise RuntimeError("planted")
setattr(run, PLACE, crash)
sys.argv = ["dsguard", "run", *sys.argv[1:]]
from dsguard.cli.app import main
main()
"""


@pytest.mark.parametrize("place", ["collect", "load_project"])
@pytest.mark.parametrize(("option", "code"), [("", 0), ("--fail-closed", 3)])
def test_a_fault_of_dsguard_stops_no_launch(option: str, code: int, place: str) -> None:
    crash = f"PLACE = {place!r}{CRASH}"
    done = subprocess.run(
        [sys.executable, "-c", crash, *option.split(), "--", sys.executable, "-c", "print('on')"],
        capture_output=True,
        text=True,
        check=False,
        env=_clean(),
    )
    assert (done.returncode, done.stdout) == (code, "on\n" if code == 0 else "")
    assert "dsguard itself failed" in done.stderr
    assert "RuntimeError: planted" in done.stderr


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    done = start("run -q -- no-such-command train.py")
    assert done.returncode == 127
    assert done.stderr.decode().splitlines()[-1] == "Error: there is no command no-such-command"
    (tmp_path / "plain").write_text("no program")
    assert start("run -q -- ./plain", tmp_path).returncode == 126


def test_no_command_is_wrong_usage() -> None:
    assert start("run ds_config.json").returncode == 2
    assert start("run --").returncode == 2
    assert start("run -- A=1 B=2").returncode == 2


SEATS = {
    "torchrun": ("RANK", "WORLD_SIZE", {"TORCHELASTIC_RUN_ID": "x"}),
    "srun": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", {"SLURM_STEP_ID": "0"}),
    "mpirun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", {}),
}


@pytest.mark.parametrize("launcher", SEATS)
def test_of_many_ranks_the_first_one_speaks(launcher: str) -> None:
    rank, size, more = SEATS[launcher]
    command = "run -- python -c 'print(1)' --deepspeed_config ds_config.repaired.json"
    spoke = [start(command, **{rank: str(r), size: "4"}, **more) for r in range(4)]
    assert [done.stdout for done in spoke] == [b"1\n"] * 4
    assert [bool(done.stderr) for done in spoke] == [True, False, False, False]


def test_a_rank_is_checked_with_the_ranks_there_are(tmp_path: Path) -> None:
    """Under a launcher the command says nothing of the world size; its environment does."""
    (tmp_path / "train.py").write_text("import deepspeed\n")
    (tmp_path / "ds.json").write_text(
        '{"train_batch_size": 6, "gradient_accumulation_steps": 2, '
        '"train_micro_batch_size_per_gpu": 1}'
    )
    command = "run -- python train.py --deepspeed_config ds.json"
    more = {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "4"}
    first, other = (start(command, tmp_path, RANK=rank, **more) for rank in "01")
    assert (first.returncode, other.returncode) == (1, 1)
    assert b"(WORLD_SIZE)" in first.stderr
    assert other.stderr == (
        b"dsguard: rank 1 is not started because of DSG201; rank 0 says the rest\n"
    )


TASKS = {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_ID": "0"}
PODS = {"RANK": "0", "WORLD_SIZE": "2"}


@pytest.mark.parametrize("variables", [TASKS, PODS], ids=["srun", "pods"])
@pytest.mark.parametrize(
    "launch",
    [
        "torchrun --nnodes=2 --node_rank=0 --nproc_per_node=8",
        "python -m torch.distributed.run --nnodes=2 --node_rank=0 --nproc_per_node=8",
        "accelerate launch --num_machines 2 --machine_rank 0 --num_processes 16",
        "deepspeed --num_gpus 16",
    ],
)
def test_a_launcher_in_every_task_starts_the_ranks_itself(
    launch: str, variables: dict[str, str], tmp_path: Path
) -> None:
    """One task of srun for each node counts nodes, not ranks."""
    (tmp_path / "train.py").write_text("import deepspeed\n")
    (tmp_path / "ds.json").write_text(
        '{"train_batch_size": 32, "gradient_accumulation_steps": 1, '
        '"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true}}'
    )
    command = f"run --dry-run -- {launch} train.py --deepspeed_config ds.json"
    done = start(command, tmp_path, **variables)
    assert done.returncode == 0, done.stderr.decode()
    (row,) = [line for line in done.stderr.decode().splitlines() if line.startswith("world_size")]
    assert row.split()[1] == "16"


def test_a_contract_that_cannot_be_written_stops_no_rank(tmp_path: Path) -> None:
    """The other ranks start, and would wait for the first one."""
    launch = "python -c 'print(1)' --deepspeed_config ds_config.repaired.json"
    line = f"-q --write-contract {tmp_path}/absent/run.json"
    first, other = (
        start(f"run {line} -- {launch}", RANK=rank, WORLD_SIZE="4") for rank in ("0", "1")
    )
    assert [(done.returncode, done.stdout) for done in (first, other)] == [(0, b"1\n")] * 2
    assert b"No such file or directory; the command starts without it" in first.stderr
    for option in ("--fail-closed", "--dry-run"):
        closed = start(f"run {option} {line} -- {launch}", RANK="0", WORLD_SIZE="4")
        assert (closed.returncode, closed.stdout) == (3, b"")
        assert b"the command is not started" in closed.stderr


def test_a_working_folder_that_is_gone_stops_no_launch(tmp_path: Path) -> None:
    gone = (
        "import os, sys; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); "
        "os.execv(sys.executable, [sys.executable, '-m', 'dsguard', *sys.argv[1:]])"
    )
    for option, code, out in (("-q", 0, b"hi\n"), ("--fail-closed", 3, b"")):
        done = subprocess.run(
            [sys.executable, "-c", gone, "run", option, "--", "echo", "hi"],
            cwd=tmp_path,
            env=_clean(),
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stdout) == (code, out)
        assert b"nothing is checked, because the working folder is gone" in done.stderr


def test_a_batch_script_of_slurm_is_no_rank() -> None:
    variables = {
        "SLURM_PROCID": "0",
        "SLURM_STEP_NUM_TASKS": "1",
        "SLURM_STEP_ID": "4294967291",
        "WORLD_SIZE": "8",
        "RANK": "3",
    }
    done = start("run --dry-run -- torchrun --nproc_per_node 4 train.py", **variables)
    assert b"would start" in done.stderr


WAIT = """
import signal, sys, time
def told(number, frame):
    print("got", signal.Signals(number).name, flush=True)
    sys.exit(40 + number)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, told)
print("ready", signal.getsignal(signal.SIGPIPE) is not None, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reaches_the_command(number: signal.Signals, tmp_path: Path) -> None:
    path = stand_in(tmp_path, "torchrun", WAIT)
    with subprocess.Popen(
        [sys.executable, "-m", "dsguard", "run", "-q", "--", *shlex.split(REPAIRED)],
        cwd=STORY,
        env={**_clean(), "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"ready")
        os.killpg(process.pid, number)
        assert process.stdout.read() == f"got {number.name}\n".encode()
        assert process.wait(30) == 40 + number


def test_the_command_takes_the_place_of_dsguard(tmp_path: Path) -> None:
    path = stand_in(tmp_path, "torchrun", "import os; print(os.getpid())")
    with subprocess.Popen(
        [sys.executable, "-m", "dsguard", "run", "-q", "--", *shlex.split(REPAIRED)],
        cwd=STORY,
        env={**_clean(), "PATH": path},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert int(process.stdout.read()) == process.pid


def test_a_reader_that_has_seen_enough_ends_the_command(tmp_path: Path) -> None:
    """Python ignores SIGPIPE, and a signal that is ignored stays so over exec."""
    done = subprocess.run(
        f"{shlex.quote(sys.executable)} -m dsguard run -q -- yes | head -n 1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=_clean(),
    )
    assert done.stdout == "y\n"
    assert "Broken pipe" not in done.stderr


def test_ten_ranks_starting_at_once(tmp_path: Path) -> None:
    kept = tmp_path / "run.dsguard.json"
    words = ["-c", "print('on')", "--deepspeed_config", "ds.json"]
    config = tmp_path / "job" / "ds.json"
    config.parent.mkdir()
    config.write_text('{"train_micro_batch_size_per_gpu": 1}')
    ranks = [
        subprocess.Popen(
            [
                *[sys.executable, "-m", "dsguard", "run", "-q"],
                *["--write-contract", str(kept), "--", sys.executable, *words],
            ],
            cwd=config.parent,
            env={**_clean(), "RANK": str(rank), "WORLD_SIZE": "10"},
            stdout=subprocess.PIPE,
        )
        for rank in range(10)
    ]
    assert [rank.communicate(timeout=120)[0] for rank in ranks] == [b"on\n"] * 10
    assert {rank.returncode for rank in ranks} == {0}
    assert json.loads(kept.read_text())["contract"] == 1
    assert {path.name for path in tmp_path.iterdir()} == {kept.name, "job"}


def script(path: Path, text: bytes) -> None:
    path.write_bytes(text)
    path.chmod(0o755)


@pytest.mark.skipif(os.name == "nt", reason="scripts of Unix")
def test_a_script_without_an_interpreter_is_one_for_sh(tmp_path: Path) -> None:
    """As shells take it; what is no text is no script."""
    script(tmp_path / "plain", b'echo "$1" "$#"; exit 7\n')
    script(tmp_path / "binary", b"\x01\0\n")
    done = start("run -q -- ./plain 'a b' c", tmp_path)
    assert (done.returncode, done.stdout) == (7, b"a b 2\n")
    done = start(f"run -q -- PATH={tmp_path} plain x", tmp_path)
    assert (done.returncode, done.stdout) == (7, b"x 1\n")
    assert start("run -q -- ./binary", tmp_path).returncode == 126


@pytest.mark.skipif(os.name == "nt", reason="scripts of Unix")
@pytest.mark.parametrize(
    ("first", "said"),
    [
        (
            b"#!/bin/sh\r\n",
            "is for '/bin/sh\\r', which is not there\n  help: its lines end as on W",
        ),
        (b"#! /no/such -x\n", "is for '/no/such -x', which is not there\n  help: name one that is"),
    ],
)
def test_an_interpreter_that_is_not_there(tmp_path: Path, first: bytes, said: str) -> None:
    script(tmp_path / "w.sh", first + b"exit 0\n")
    done = start("run -q -- ./w.sh", tmp_path)
    assert done.returncode == 127
    assert f"Error: ./w.sh {said}" in done.stderr.decode()
