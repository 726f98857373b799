"""``dsguard check`` as it is called from a shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from packaging.version import Version

from dsguard.model.finding import Finding
from dsguard.rules import all_rules
from dsguard.schema.history import NEWEST_KNOWN
from tests.conftest import Dsguard

GOOD = '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}\n'
BAD = GOOD.replace("{", '{"train_batch_size": 64, ')
LAUNCH = "deepspeed --num_gpus 4 train.py --deepspeed_config ds_config.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ds_config.json").write_text(GOOD)
    (tmp_path / "bad.json").write_text(BAD)
    (tmp_path / "train.py").write_text("")
    return tmp_path


def test_a_clean_run_exits_with_0(dsguard: Dsguard, folder: Path) -> None:
    outcome = dsguard(f"check ds_config.json -- {LAUNCH}", folder)
    assert outcome.code == 0
    assert outcome.out.startswith("No problems found in 1 file")


def test_an_error_exits_with_1(dsguard: Dsguard, folder: Path) -> None:
    outcome = dsguard("check bad.json --world-size 4", folder)
    assert outcome.code == 1
    assert "64, but 4 per GPU x 2 accumulation steps x 4 data-parallel ranks is 32" in outcome.out


@pytest.mark.parametrize(
    ("level", "code"), [("error", 0), ("warning", 0), ("info", 1), ("never", 0)]
)
def test_fail_on_decides_the_exit_code(
    dsguard: Dsguard, folder: Path, level: str, code: int
) -> None:
    """A train_batch_size without a launch is an info."""
    (folder / "total.json").write_text('{"train_batch_size": 64}')
    assert dsguard(f"check total.json --fail-on {level}", folder).code == code


def test_never_fails_even_on_errors(dsguard: Dsguard, folder: Path) -> None:
    assert dsguard("check bad.json --world-size 4 --fail-on never", folder).code == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("check", "name a config"),
        ("check ds_config.json --", "no launch command follows --"),
        ("check ds_config.json -- ''", "no launch command follows --"),
        ("facts ds_config.json --", "no launch command follows --"),
        ("facts", "name a config"),
        ("check ds_config.json --world-size 0", "'--world-size'"),
        ("check ds_config.json --target newest", "not a DeepSpeed version"),
        ("check ds_config.json --target 0.3.1", "older than"),
        ("check ds_config.json --select batch-size-mismach", "did you mean batch-size-mismatch?"),
        ("check ds_config.json --hostfile nowhere", "there is no file nowhere"),
        ("check ds_config.json --front-end trainer", "trainer"),
        ("check ds_config.json --output-file no/such/folder/x.json", "cannot write"),
        ("chek ds_config.json", "chek"),
    ],
)
def test_wrong_usage_exits_with_2(dsguard: Dsguard, folder: Path, line: str, words: str) -> None:
    outcome = dsguard(line, folder)
    assert outcome.code == 2
    assert words in " ".join(outcome.err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("check nowhere.json", "nowhere.json: does not exist"),
        ("check ds_confg.json", "did you mean ds_config.json?"),
        ("check ''", "'': is no file name"),
        ("check '' -- deepspeed train.py --deepspeed_config bad.json", "'': is no file name"),
        ("check empty", "no DeepSpeed config or training script in this folder"),
        ("check latin.json", "is not UTF-8"),
        ("check -- deepspeed train.py", "names no DeepSpeed config"),
        ("check -- bash run.sh", "check the script itself: dsguard check run.sh"),
        ("check ds_config.json -- sbatch -N 2 run.sh", "starts run.sh, a script of its own"),
        ("facts -- ./run.sh", "dsguard check ./run.sh"),
    ],
)
def test_an_incomplete_answer_exits_with_3(
    dsguard: Dsguard, folder: Path, line: str, words: str
) -> None:
    (folder / "empty").mkdir()
    (folder / "run.sh").write_text(f"#!/bin/sh\n{LAUNCH}\n")
    (folder / "latin.json").write_bytes(b'{"train_batch_size": "\xe9"}')
    outcome = dsguard(line, folder)
    assert outcome.code == 3
    assert words in outcome.out
    assert outcome.out.splitlines()[-1].endswith("incomplete") or "incomplete" in outcome.out


@pytest.mark.parametrize("name", ["x" * 5000, "x" * 5000 + "/a.json"])
def test_a_name_that_no_file_can_have(dsguard: Dsguard, folder: Path, name: str) -> None:
    outcome = dsguard(f"check {name}", folder)
    assert (outcome.code, "cannot be read: File name too long" in outcome.out) == (3, True)
    assert dsguard(f"check ds_config.json --hostfile {name}", folder).code == 2


@pytest.fixture
def out_of_reach(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that this user may not enter, also where the user is root."""
    locked = folder / "locked"
    locked.mkdir()
    (locked / "ds_config.json").write_text(GOOD)
    real = os.stat

    def stat(path: Any, *rest: Any, **options: Any) -> os.stat_result:
        if "locked" in Path(path).parent.parts:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *rest, **options)

    monkeypatch.setattr(os, "stat", stat)
    return locked


def test_a_config_out_of_reach(dsguard: Dsguard, folder: Path, out_of_reach: Path) -> None:
    outcome = dsguard("check locked/ds_config.json", folder)
    assert outcome.code == 3
    assert "locked/ds_config.json: may not be read by this user" in outcome.out


def test_a_folder_with_a_config_out_of_reach(
    dsguard: Dsguard, folder: Path, out_of_reach: Path
) -> None:
    """The rest is checked, and the answer says that it is not whole."""
    outcome = dsguard("check .", folder)
    assert outcome.code == 3
    assert "locked/ds_config.json: may not be read by this user" in outcome.out
    assert "in 2 files, and the answer is incomplete" in outcome.out


def test_a_folder_out_of_reach(
    dsguard: Dsguard, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    outcome = dsguard("check .", folder)
    assert (outcome.code, outcome.out.splitlines()[0]) == (
        3,
        "error: .: may not be read by this user",
    )


def test_one_unreadable_file_does_not_hide_the_others(dsguard: Dsguard, folder: Path) -> None:
    outcome = dsguard("check nowhere.json bad.json --world-size 4", folder)
    assert outcome.code == 3
    assert "batch-size-mismatch" in outcome.out


def test_the_config_is_taken_from_the_launch(dsguard: Dsguard, folder: Path) -> None:
    outcome = dsguard(
        "check -- torchrun --nproc_per_node 4 train.py --deepspeed_config bad.json", folder
    )
    assert outcome.code == 1
    assert "--> bad.json:1:22" in outcome.out


def test_a_launch_in_quotes_is_the_same_launch(dsguard: Dsguard, folder: Path) -> None:
    """As ``-- "$LAUNCH"`` gives it."""
    quoted = dsguard(f"check bad.json -- '{LAUNCH}'", folder)
    assert "4 data-parallel ranks is 32" in quoted.out
    assert quoted == dsguard(f"check bad.json -- {LAUNCH}", folder)


def test_a_script_with_white_space_in_its_name(dsguard: Dsguard, folder: Path) -> None:
    (folder / "my train.py").touch()
    out = dsguard("check ds_config.json -- 'my train.py'", folder).out
    assert "only if my train.py reads it by itself" in out


def test_a_launch_that_names_a_missing_config(dsguard: Dsguard, folder: Path) -> None:
    outcome = dsguard("check -- deepspeed train.py --deepspeed_config gone.json", folder)
    assert outcome.code == 1
    assert "missing-config" in outcome.out


def test_standard_input(dsguard: Dsguard, folder: Path) -> None:
    outcome = dsguard("check - --world-size 4 -o concise", folder, stdin=BAD.encode())
    assert outcome.out.startswith("<stdin>:1:22: error[DSG201] batch-size-mismatch: ")


def test_a_script_on_standard_input_is_no_broken_config(dsguard: Dsguard) -> None:
    outcome = dsguard("check -", stdin=b"#!/bin/bash\ndeepspeed train.py\n")
    assert outcome.code == 3
    assert "<stdin>: is a script, not a config" in outcome.out


def test_closed_standard_input(dsguard: Dsguard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsguard.cli.inputs.sys", SimpleNamespace(stdin=None))
    outcome = dsguard("check -")
    assert (outcome.code, outcome.out.splitlines()[0]) == (3, "error: <stdin>: is closed")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is a device of Linux")
@pytest.mark.parametrize("arguments", ["check ds_config.json", "rules", "schema"])
def test_an_answer_that_cannot_be_written(folder: Path, arguments: str) -> None:
    """1 would say that an error was found in the config."""
    program = "from dsguard.cli.app import main; main()"
    with open("/dev/full", "w") as full:
        outcome = subprocess.run(
            [sys.executable, "-c", program, *arguments.split()],
            cwd=folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    message = "Error: cannot write to standard output: No space left on device\n"
    assert (outcome.returncode, outcome.stderr) == (3, message)


def test_a_release_that_nobody_knows_yet_is_not_passed_off_as_known(
    dsguard: Dsguard, folder: Path
) -> None:
    outcome = dsguard("check ds_config.json --target 99.1", folder)
    assert f"99.1 (as --target says; newer than {NEWEST_KNOWN}" in outcome.out
    assert "newer than" not in dsguard("check ds_config.json --target 0.19.8", folder).out


def test_no_place_of_a_template_is_to_be_quoted(dsguard: Dsguard, folder: Path) -> None:
    text = '{"train_batch_size": TOTAL,\n "train_micro_batch_size_per_gpu": MICRO,\n}\n'
    (folder / "template.json").write_text(text)
    out = dsguard("check template.json", folder).out
    assert "DSG005" not in out
    assert 'write "MICRO"' not in out


def test_a_folder_is_searched_for_configs(dsguard: Dsguard, folder: Path) -> None:
    (folder / "package.json").write_text('{"name": "x", "version": "1.0.0"}')
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "bad.json").write_text(BAD)
    (folder / "deepspeed_broken.json").write_text("{")
    outcome = dsguard("check . --world-size 4 -o json", folder)
    checked = [check["config"] for check in json.loads(outcome.out)["checks"]]
    assert checked == ["bad.json", "deepspeed_broken.json", "ds_config.json"]


def test_only_the_first_lone_dashes_split(dsguard: Dsguard, folder: Path) -> None:
    """What follows belongs to the launch, further dashes and our own option names included."""
    outcome = dsguard(f"check ds_config.json -o json -- {LAUNCH} -- --world-size 7", folder)
    (check,) = json.loads(outcome.out)["checks"]
    assert check["launch"] == f"{LAUNCH} -- --world-size 7"
    assert check["facts"]["world_size"]["value"] == 4


def test_world_size_option_beats_the_launch(dsguard: Dsguard, folder: Path) -> None:
    outcome = dsguard(f"check ds_config.json --world-size 2 -o json -- {LAUNCH}", folder)
    fact = json.loads(outcome.out)["checks"][0]["facts"]["world_size"]
    assert fact["value"] == 2
    assert fact["origin"]["kind"] == "option"
    assert [loser["value"] for loser in fact["ignored"]] == [4]


def test_output_file_gets_the_report(dsguard: Dsguard, folder: Path) -> None:
    outcome = dsguard("check bad.json --world-size 4 -o json --output-file report.json", folder)
    assert outcome.out == ""
    assert json.loads((folder / "report.json").read_text())["summary"]["error"] == 1


def test_select_and_ignore(dsguard: Dsguard, folder: Path) -> None:
    (folder / "two.json").write_text('{"train_batch_sise": 8}')
    assert dsguard("check two.json --select schema --ignore unknown-key", folder).code == 0
    assert dsguard("check two.json --select dsg2 -o concise", folder).out.count("\n") == 1
    assert dsguard("check two.json --select ,", folder).code == 2
    assert dsguard("check two.json -o concise", folder).out.count("\n") == 2


def test_skipped_rules_are_said_under_v(dsguard: Dsguard, folder: Path) -> None:
    (folder / "total.json").write_text('{"train_batch_size": 64}')
    outcome = dsguard("check total.json -v", folder)
    assert "batch-size-mismatch  needs micro_batch_size" in outcome.out
    assert "no launch command was given" in outcome.out


def test_quiet_says_nothing_when_clean(dsguard: Dsguard, folder: Path) -> None:
    assert dsguard(f"check ds_config.json -q -- {LAUNCH}", folder).out == ""


def test_deep_nesting_is_a_finding(dsguard: Dsguard, folder: Path) -> None:
    (folder / "deep.json").write_text("[" * 10_000 + "]" * 10_000)
    outcome = dsguard("check deep.json -o concise", folder)
    assert outcome.code == 1
    assert "syntax-error" in outcome.out


def test_a_rule_that_crashes_is_a_finding_of_its_own(
    dsguard: Dsguard, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(case: object, report: object) -> Iterator[Finding]:
        raise RuntimeError("oops")

    broken = [
        replace(rule, check=crash) if rule.meta.slug == "known-bug" else rule
        for rule in all_rules()
    ]
    monkeypatch.setattr("dsguard.cli.options.select", lambda *_: broken)
    outcome = dsguard("check bad.json --world-size 4", folder)
    assert outcome.code == 3
    assert "the rule known-bug crashed (RuntimeError: oops" in outcome.out
    assert "batch-size-mismatch" in outcome.out


def test_the_shell_counts_unless_it_is_left_out(
    dsguard: Dsguard, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    launch = "deepspeed train.py --deepspeed_config ds_config.json"
    (folder / "run.sh").write_text(f"#!/bin/bash\n{launch}\n")

    def world_size(line: str) -> Any:
        facts = json.loads(dsguard(f"facts -o json {line}", folder).out)["checks"][0]["facts"]
        return facts["world_size"].get("value")

    assert world_size(f"-- {launch}") == 2
    assert world_size(f"--no-env -- {launch}") is None
    # Nobody says in which shell a file is started.
    assert world_size("run.sh") is None


def test_no_installed_package_counts_without_the_environment(
    dsguard: Dsguard, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dsguard.facts.target.installed", lambda _: Version("0.16.4"))
    monkeypatch.setattr("dsguard.facts.target.pinned", lambda *_: None)
    assert "DeepSpeed 0.16.4 (installed here)" in dsguard("check ds_config.json", folder).out
    said = dsguard("check ds_config.json --no-env", folder).out
    assert f"DeepSpeed {NEWEST_KNOWN} (the newest that dsguard knows)" in said


def test_strict_fails_on_warnings(dsguard: Dsguard, folder: Path) -> None:
    line = f"check --select config-not-in-launch ds_config.json -- {LAUNCH.partition(' --d')[0]}"
    assert dsguard(line, folder).code == 0
    assert dsguard(line.replace("check", "check --strict"), folder).code == 1
    assert dsguard(line.replace("check", "check --strict --fail-on error"), folder).code == 0


def test_strict_wants_every_rule_judged(dsguard: Dsguard, folder: Path) -> None:
    line = "check --strict --select warmup-longer-than-total ds_config.json"
    outcome = dsguard(line, folder)
    assert outcome.code == 3
    assert "warmup-longer-than-total  needs total_steps" in outcome.out
    assert "the answer is incomplete" in outcome.out
    report = json.loads(dsguard(f"{line} -o json", folder).out)
    assert report["summary"]["complete"] is False
    assert dsguard("check --strict --select unknown-key ds_config.json", folder).code == 0
