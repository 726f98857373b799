"""The Python API, and that what its documentation shows is what happens."""

from __future__ import annotations

import doctest
import json
import math
from pathlib import Path
from typing import Any

import pytest

import dsguard
import dsguard.api
from dsguard import Finding, Report, Severity, check_dict, check_file, check_text
from dsguard.facts.target import TargetError
from dsguard.reading import ReadError
from tests.conftest import ROOT

CONFIG = '{\n  "train_batch_size": 32,\n  "gradient_accumulation_steps": 1\n}\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ds_config.json").write_text(CONFIG)
    (tmp_path / "train.py").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_documentation_is_true(folder: Path) -> None:
    outcome = doctest.testfile(str(ROOT / "docs" / "api.md"), module_relative=False)
    assert outcome.attempted > 10
    assert outcome.failed == 0


def test_the_examples_of_the_docstrings_are_true(folder: Path) -> None:
    outcome = doctest.testmod(dsguard.api)
    assert outcome.attempted > 5
    assert outcome.failed == 0


def test_every_public_name_is_there() -> None:
    assert all(getattr(dsguard, name) for name in dsguard.__all__)
    assert dir(dsguard) == sorted(dsguard.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'check_all'"):
        dsguard.check_all  # noqa: B018


def rules(report: Report) -> list[str]:
    found: list[Finding] = [finding for _, finding in report.findings]
    return [finding.rule for finding in found]


def test_file_text_and_dict_say_the_same(folder: Path) -> None:
    options: dict[str, Any] = {"world_size": 3, "target": "0.19.8"}
    reports = [
        check_file("ds_config.json", **options),
        check_file(folder / "ds_config.json", **options),
        check_text(CONFIG, **options),
        check_dict(json.loads(CONFIG), **options),
    ]
    assert {tuple(rules(report)) for report in reports} == {("indivisible-batch-size",)}
    assert [report.checks[0].config for report in reports] == [
        "ds_config.json",
        str(folder / "ds_config.json"),
        "<text>",
        "<dict>",
    ]


def test_words_are_a_launch_too(folder: Path) -> None:
    words = ["deepspeed", "--num_gpus", "3", "train.py", "--deepspeed_config", "ds_config.json"]
    assert rules(check_file("ds_config.json", launch=words)) == ["indivisible-batch-size"]


SCRIPT = """\
import deepspeed
engine, *_ = deepspeed.initialize(model=model, config={})
"""


@pytest.mark.parametrize("config", ['"ds_config.json"', CONFIG])
def test_a_script_with_the_config_that_it_holds_or_names(folder: Path, config: str) -> None:
    (folder / "train.py").write_text(SCRIPT.format(config))
    report = check_file("train.py", launch="deepspeed --num_gpus 3 train.py", target="0.19.8")
    assert rules(report) == ["indivisible-batch-size"]
    ((_, finding),) = report.findings
    assert finding.location.source.name == ("train.py" if "{" in config else "ds_config.json")
    assert report.complete


def test_a_script_whose_config_is_not_there(folder: Path) -> None:
    (folder / "train.py").write_text(SCRIPT.format('"gone.json"'))
    report = check_file("train.py")
    assert not report.complete
    assert "the script reads gone.json, which is not here" in report.failures[0].message
    (folder / "train.py").write_text("print(1)")
    with pytest.raises(ReadError, match="shows nothing of DeepSpeed"):
        check_file("train.py")


@pytest.mark.parametrize(
    ("config", "error", "words"),
    [
        ({"a": {"b": [{2: 3}]}}, TypeError, "the key 2 in b is no string"),
        ({"dtype": object()}, TypeError, "object is not JSON serializable"),
        ({"lr": math.nan}, ValueError, "not JSON compliant"),
    ],
)
def test_a_dict_that_is_no_json(config: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        check_dict(config)


def test_a_dict_that_holds_itself() -> None:
    config: dict[str, Any] = {}
    config["a"] = config
    with pytest.raises(ValueError, match="Circular"):
        check_dict(config)


def test_errors(folder: Path) -> None:
    with pytest.raises(ReadError, match="does not exist"):
        check_file("nowhere.json")
    with pytest.raises(TargetError):
        check_text("{}", target="0.3")
    with pytest.raises(ValueError, match="quot"):
        check_text("{}", launch="deepspeed 'train.py")
    for number in (0, "8"):
        with pytest.raises(ValueError, match="whole number above 0"):
            check_text("{}", world_size=number)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="trainer"):
        check_text("{}", front_end="trainer")  # type: ignore[arg-type]


def test_a_syntax_error_is_a_finding() -> None:
    report = check_text('{"a": ')
    assert rules(report) == ["syntax-error"]
    assert report.count(Severity.ERROR) == 1
    assert report.complete


def test_a_rule_that_crashes_makes_the_report_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object, **__: object) -> None:
        raise RuntimeError("oops")

    monkeypatch.setattr("dsguard.checking.resolve", crash)
    report = check_text("{}")
    assert rules(report) == ["internal-error"]
    assert not report.complete
