"""The settings of a project, as commands find and use them."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from dsguard.settings.model import ProjectSettings, key_of
from tests.conftest import ROOT, Dsguard

CONFIG = (
    '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4,'
    ' "gradient_accumulation_steps": 2, "gradient_cliping": 1.0}\n'
)
LAUNCH = "deepspeed --num_gpus 4 train.py --deepspeed_config ds.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ds.json").write_text(CONFIG)
    (tmp_path / "train.py").write_text("")
    (tmp_path / "sub").mkdir()
    return tmp_path


def settings(folder: Path, text: str, name: str = "dsguard.toml") -> None:
    (folder / name).write_text(text, encoding="utf-8")


def found(dsguard: Dsguard, line: str, folder: Path) -> list[str]:
    report = json.loads(dsguard(f"{line} -o json", folder).out)
    return [finding["rule"] for finding in report["findings"]]


MISTAKES = {
    "unknown key": (
        'target = "0.19.8"\nselct = ["all"]\n',
        "Error: dsguard.toml:2:1: there is no setting selct; did you mean select?",
    ),
    "an underscore": (
        'fail_on = "error"\n',
        "Error: dsguard.toml:1:1: there is no setting fail_on; did you mean fail-on?",
    ),
    "like no key": (
        "[[job]]\nname = 'a'\nzzz = 1\n",
        "Error: dsguard.toml:3:1: there is no setting job[1].zzz; the keys are: target, "
        "front-end, world-size, gpus-per-node, hostfile, name, config, launch",
    ),
    "all mistakes at once, in order": (
        "world-size = 0\nselect = 'all'\n[[job]]\nname = ''\n",
        "Error: dsguard.toml:1:1: world-size must be greater than or equal to 1\n"
        "Error: dsguard.toml:2:1: select must be a valid list\n"
        "Error: dsguard.toml:4:1: job[1].name must not be empty",
    ),
    "a boolean as a number": (
        "world-size = true\n",
        "Error: dsguard.toml:1:1: world-size must be a valid integer",
    ),
    "a missing key": (
        "[[ignore-at]]\nrule = 'unknown-key'\nfile = 'ds.json'\n",
        "Error: dsguard.toml:1:1: ignore-at[1] has no key reason",
    ),
    "a pointer without its slash": (
        "[[ignore-at]]\nrule = 'unknown-key'\nfile = 'x'\nreason = 'y'\npointer = 'optimizer'\n",
        "Error: dsguard.toml:5:1: ignore-at[1].pointer must be a JSON pointer such as "
        "/optimizer/params/lr",
    ),
    "no date": (
        "[[ignore-at]]\nrule = 'a'\nfile = 'x'\nreason = 'y'\nexpires = 'soon'\n",
        "Error: dsguard.toml:5:1: ignore-at[1].expires must be a valid date or datetime, "
        "input is too short",
    ),
    "a rule in a list": (
        'ignore = [\n  "batch",\n  "unknown-keys",\n]\n',
        "Error: dsguard.toml:3:3: no rule is called unknown-keys; did you mean unknown-key?",
    ),
    "a rule as a key": (
        '[severity]\nunknown-kye = "error"\n',
        "Error: dsguard.toml:2:1: no rule is called unknown-kye; did you mean unknown-key?",
    ),
    "a locked rule that is left out": (
        'locked = ["unknown-key"]\nignore = ["DSG101"]\n',
        "Error: dsguard.toml:2:11: unknown-key is locked and cannot be left out",
    ),
    "a severity": (
        '[severity]\nunknown-key = "fatal"\n',
        "Error: dsguard.toml:2:1: severity.unknown-key must be 'error', 'warning' or 'info'",
    ),
    "a target": (
        'target = "newest"\n',
        "Error: dsguard.toml:1:1: 'newest' is not a DeepSpeed version",
    ),
    "a hostfile": (
        'hostfile = "hosts"\n',
        "Error: dsguard.toml:1:1: there is no file hosts",
    ),
    "a version": (
        'required-version = ">=99"\nkey-of-the-future = 1\n',
        "Error: dsguard.toml:1:1: these settings are for dsguard >=99, and this is 0.1.0; "
        'pip install "dsguard>=99"',
    ),
    "no version": (
        'required-version = "newest"\n',
        "Error: dsguard.toml:1:1: required-version 'newest' is no version specifier; write it as "
        'in ">=0.1,<1"',
    ),
    "no TOML": (
        'target = "0.19.8"\nselect = [\n',
        "Error: dsguard.toml:3:1: this is no TOML: ",
    ),
    "no baseline": (
        'baseline = "accepted.json"\n',
        "Error: accepted.json: does not exist; write it with dsguard baseline create",
    ),
    "another file as baseline": (
        'baseline = "ds.json"\n',
        "Error: ds.json: ds.json is no baseline of dsguard",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_in_settings(dsguard: Dsguard, folder: Path, name: str) -> None:
    text, words = MISTAKES[name]
    settings(folder, text)
    outcome = dsguard("check ds.json", folder)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith(words)
    assert outcome.err.count("\n") == words.count("\n") + 1


JOBS = {
    "two of one name": (
        "[[job]]\nname = 'a'\nconfig = 'ds.json'\n[[job]]\nname = 'a'\nconfig = 'ds.json'\n",
        "Error: dsguard.toml:5:1: two jobs are called a",
    ),
    "nothing to check": (
        "[[job]]\nname = 'a'\n",
        "Error: dsguard.toml:2:1: the job a has neither a config nor a launch",
    ),
    "a quote that is not closed": (
        "[[job]]\nname = 'a'\nlaunch = 'deepspeed \"train.py'\n",
        "Error: dsguard.toml:3:1: the launch of the job a cannot be read: ",
    ),
    "an empty launch": (
        "[[job]]\nname = 'a'\nlaunch = ''\n",
        "Error: dsguard.toml:3:1: the launch of the job a is empty",
    ),
    "a target of its own": (
        "[[job]]\nname = 'a'\nconfig = 'ds.json'\ntarget = '0.0'\n",
        "Error: dsguard.toml:4:1: ",
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_mistakes_in_jobs(dsguard: Dsguard, folder: Path, name: str) -> None:
    text, words = JOBS[name]
    settings(folder, text)
    outcome = dsguard("check", folder)
    assert outcome.code == 2
    assert outcome.err.startswith(words)


def test_the_nearest_settings_count(dsguard: Dsguard, folder: Path) -> None:
    settings(folder, '[tool.dsguard]\nselect = ["batch"]\n', "pyproject.toml")
    settings(folder / "sub", '[project]\nname = "x"\n', "pyproject.toml")
    line = "check ../ds.json --world-size 4 --target 0.19.8"
    assert found(dsguard, line, folder / "sub") == ["batch-size-mismatch"]
    settings(folder, 'ignore = ["batch"]\n')
    assert found(dsguard, line, folder / "sub") == ["unknown-key"]


def test_isolated(dsguard: Dsguard, folder: Path) -> None:
    settings(folder, "this is no TOML")
    assert dsguard("check ds.json", folder).code == 2
    assert dsguard("check ds.json --isolated", folder).code == 0
    assert dsguard("facts ds.json --isolated", folder).code == 0
    outcome = dsguard("check ds.json --isolated --settings dsguard.toml", folder)
    assert "means the opposite of --isolated" in outcome.err


def test_a_broken_pyproject_is_others_business(dsguard: Dsguard, folder: Path) -> None:
    settings(folder, '[tool.black\ndsguard = "is mentioned"\n', "pyproject.toml")
    assert dsguard("check ds.json", folder).code == 0
    settings(folder, "[tool.dsguard]\nselect = [\n", "pyproject.toml")
    assert dsguard("check ds.json", folder).code == 2


def test_a_table_of_its_own_in_dsguard_toml(dsguard: Dsguard, folder: Path) -> None:
    settings(folder, '[tool.dsguard]\nselct = ["batch"]\n')
    assert "dsguard.toml:2:1: there is no setting selct" in dsguard("check ds.json", folder).err


def test_options_win(dsguard: Dsguard, folder: Path) -> None:
    settings(
        folder,
        'target = "0.16.4"\nworld-size = 8\nfail-on = "never"\nselect = ["batch"]\n'
        'front-end = "lightning"\n',
    )
    report = json.loads(dsguard("check ds.json -o json", folder).out)
    facts = report["checks"][0]["facts"]
    assert facts["deepspeed_version"]["value"] == "0.16.4"
    assert facts["front_end"]["value"] == "lightning"
    assert facts["world_size"]["value"] == 8
    line = "check ds.json --target 0.19.8 --world-size 4 --front-end plain -o json --select all"
    report = json.loads(dsguard(line, folder).out)
    facts = report["checks"][0]["facts"]
    assert facts["deepspeed_version"]["value"] == "0.19.8"
    assert facts["front_end"]["value"] == "plain"
    assert facts["world_size"]["value"] == 4
    assert "unknown-key" in [finding["rule"] for finding in report["findings"]]
    assert dsguard("check ds.json --world-size 4", folder).code == 0
    assert (
        dsguard("check ds.json --world-size 4 --front-end auto --fail-on error", folder).code == 1
    )


def test_ignore_adds_to_the_settings(dsguard: Dsguard, folder: Path) -> None:
    settings(folder, 'ignore = ["unknown-key"]\n')
    line = "check ds.json --world-size 4"
    assert found(dsguard, line, folder) == ["batch-size-mismatch"]
    assert found(dsguard, f"{line} --ignore batch", folder) == []
    assert found(dsguard, f"{line} --select unknown-key", folder) == ["unknown-key"]


def test_severities(dsguard: Dsguard, folder: Path) -> None:
    settings(folder, '[severity]\nDSG101 = "error"\nbatch-size-mismatch = "info"\n')
    report = json.loads(dsguard("check ds.json --world-size 4 -o json", folder).out)
    severities = {finding["rule"]: finding["severity"] for finding in report["findings"]}
    assert severities == {"unknown-key": "error", "batch-size-mismatch": "info"}
    assert report["summary"]["error"] == 1


def test_locked_rules_always_run(dsguard: Dsguard, folder: Path) -> None:
    settings(folder, 'locked = ["unknown-key"]\n')
    line = "check ds.json --world-size 4 --select batch"
    assert found(dsguard, line, folder) == ["batch-size-mismatch", "unknown-key"]
    assert found(dsguard, "check ds.json --ignore schema,batch", folder) == ["unknown-key"]
    outcome = dsguard("check ds.json --ignore unknown-key", folder)
    assert outcome.code == 2
    assert "unknown-key is locked" in outcome.err


TWO_JOBS = """
[[job]]
name = "small"
config = "ds.json"
launch = "deepspeed --num_gpus 4 train.py --deepspeed_config ds.json"

[[job]]
name = "large"
launch = ["deepspeed", "--num_gpus", "8", "train.py", "--deepspeed_config", "ds.json"]

[[job]]
name = "config alone"
config = "ds.json"
world-size = 16
target = "0.16.4"
"""


def test_jobs(dsguard: Dsguard, folder: Path) -> None:
    settings(folder, TWO_JOBS)
    report = json.loads(dsguard("check -o json", folder).out)
    assert [check["facts"]["world_size"]["value"] for check in report["checks"]] == [4, 8, 16]
    targets = [check["target"]["deepspeed"] for check in report["checks"]]
    assert targets[2] == "0.16.4"
    assert "0.16.4" not in targets[:2]
    report = json.loads(dsguard("check -o json --job large", folder).out)
    assert [check["facts"]["world_size"]["value"] for check in report["checks"]] == [8]
    report = json.loads(dsguard("check -o json --job large --world-size 2", folder).out)
    assert [check["facts"]["world_size"]["value"] for check in report["checks"]] == [2]
    assert dsguard("facts --job small", folder).code == 0


def test_jobs_from_another_folder(dsguard: Dsguard, folder: Path) -> None:
    """Their paths are seen from the folder of the settings."""
    settings(folder, TWO_JOBS)
    report = json.loads(dsguard("check -o json", folder / "sub").out)
    assert [check["config"] for check in report["checks"]] == ["../ds.json"] * 3
    assert report["summary"]["complete"]
    assert {finding["file"] for finding in report["findings"]} == {"../ds.json"}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("check --job smal", "no job is called smal; did you mean small?"),
        ("check --job x", "no job is called x; the jobs are: small, large, config alone"),
        ("check ds.json --job small", "a job has its own config and launch command"),
        (f"check --job small -- {LAUNCH}", "a job has its own config and launch command"),
        ("check --isolated --job small", "no job is called small; the settings have none"),
        ("check --isolated", "name a config"),
        ("check --settings nowhere.toml", "nowhere.toml: does not exist"),
    ],
)
def test_wrong_usage_of_jobs(dsguard: Dsguard, folder: Path, line: str, words: str) -> None:
    settings(folder, TWO_JOBS)
    outcome = dsguard(line, folder)
    assert outcome.code == 2
    assert words in " ".join(outcome.err.split())


def test_exclude(dsguard: Dsguard, folder: Path) -> None:
    (folder / "vendor" / "x").mkdir(parents=True)
    (folder / "vendor" / "x" / "ds.json").write_text(CONFIG)
    settings(folder, 'exclude = ["vendor/"]\n')
    checked = json.loads(dsguard("check . -o json", folder).out)["checks"]
    assert [check["config"] for check in checked] == ["ds.json"]
    named = "check vendor/x/ds.json -o json"
    assert len(json.loads(dsguard(named, folder).out)["checks"]) == 1
    outcome = dsguard(f"{named} --force-exclude", folder)
    assert (outcome.code, json.loads(outcome.out)["checks"]) == (0, [])
    outcome = dsguard(
        "check ../vendor/x/ds.json ../ds.json -o json --force-exclude", folder / "sub"
    )
    assert [check["config"] for check in json.loads(outcome.out)["checks"]] == ["../ds.json"]


def test_the_documented_settings_are_settings(dsguard: Dsguard, folder: Path) -> None:
    """Every TOML example of the page is read; the first one names all keys but ignore-at."""
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    examples = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 2
    (folder / "dsguard-baseline.json").write_text('{"version": 1, "findings": []}')
    (folder / "configs").mkdir()
    for name in ("ds_zero2.json", "ds_zero3.json"):
        (folder / "configs" / name).write_text(CONFIG)
    for example in examples:
        settings(folder, example, "pyproject.toml")
        assert dsguard("check ds.json", folder).code in (0, 1)
    settings(folder, examples[0], "pyproject.toml")
    assert len(json.loads(dsguard("check -o json", folder).out)["checks"]) == 2
    known = {key_of(field.name) for field in fields(ProjectSettings)}
    assert {key for key in known if key and key not in examples[0]} == {"ignore-at"}


@pytest.mark.parametrize(("fail_on", "code"), [("error", 1), ("never", 0)])
def test_run_listens_to_the_settings(
    dsguard: Dsguard, folder: Path, fail_on: str, code: int
) -> None:
    settings(folder, f'fail-on = "{fail_on}"\ntarget = "0.19.8"\n')
    outcome = dsguard(f"run --dry-run -- {LAUNCH}", folder)
    assert outcome.code == code
    assert "batch-size-mismatch" in outcome.err
    settings(folder, "selct = 1\n")
    assert dsguard(f"run --dry-run -- {LAUNCH}", folder).code == 2
