"""A small file takes little memory, whatever it holds: no text is kept once for every finding."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsguard import checking, pairing
from dsguard.checking import Settings, check_source
from dsguard.model.report import Report, Target, TargetOrigin
from dsguard.model.source import Source
from dsguard.model.tree import split_pointer
from dsguard.pairing import Input, check_all
from dsguard.policy import Policy, make_report
from dsguard.render.concise import render_concise
from dsguard.render.github import render_github
from dsguard.render.json_report import render_json
from dsguard.render.sarif import render_sarif
from dsguard.render.text import render_text
from dsguard.rules import all_rules
from tests.conftest import Dsguard

SETTINGS = Settings(Target("0.19.8", TargetOrigin.OPTION))
KEY = "k" * 100_000
MANY = 5_000
"""Of these, each with a copy of the key, would take half a gigabyte."""


def items(form: str) -> str:
    return ", ".join(form.replace("@", str(number)) for number in range(MANY))


def below(*keys: str, inner: str) -> str:
    text = inner
    for key in reversed(keys):
        text = f'{{"{key}": {text}}}'
    return '{"train_batch_size": 8, "gradient_clipping": 1, ' + text[1:]


ADAM = f'{{"type": "Adam", "params": {{"{KEY}": {{@}}}}}}'
REPEATED = items('"a": 1')
CONFIGS = {
    "repeated keys": below("zero_optimization", KEY, inner="{" + REPEATED + "}"),
    "objects in a list": below(KEY, inner="[" + items('{"a": @, "a": @}') + "]"),
    "literals": below(KEY, inner="{" + items("k@: True,\n") + "}"),
    "parameters": below("optimizer", inner=ADAM.replace("@", items('"k@": 1'))),
    "autos": below("optimizer", inner=ADAM.replace("@", items('"k@": "auto"'))),
    "a long value that is repeated": below(KEY, inner=f'{{"a": "{KEY}", {REPEATED}}}'),
}


def peak(run: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def reported(text: str) -> Report:
    return make_report([check_source(Source("ds.json", text), None, SETTINGS)], Policy())


@pytest.mark.parametrize("name", CONFIGS)
def test_a_long_key_is_not_kept_for_every_finding_below_it(name: str) -> None:
    def outputs() -> None:
        report = reported(CONFIGS[name])
        assert report.findings
        render_text(report, color=False, unicode=True)
        render_concise(report)
        render_github(report)
        render_json(report)
        render_sarif(report)

    assert peak(outputs) < 150_000_000


def test_pointers_that_were_split_are_not_kept() -> None:
    def split() -> None:
        for number in range(1_000):
            assert len(split_pointer(f"/{number}{KEY}/a")) == 2

    assert peak(split) < 5_000_000


def test_messages_name_the_beginning_of_a_long_key() -> None:
    inner = f'{{"stage": 1, "{KEY}": 1}}'
    text = (
        below("zero_optimization", inner=inner)[:-1] + f', "fp16": {{"a{KEY}": 1, "a{KEY}": 1}}}}'
    )
    found = [finding for _, finding in reported(text).findings]
    assert {"unknown-key", "duplicate-key"} <= {finding.rule for finding in found}
    assert all(len(finding.message) < 1_000 for finding in found)
    at = next(finding for finding in found if finding.rule == "unknown-key")
    assert at.location.pointer == f"/zero_optimization/{KEY}"
    assert f"zero_optimization.{'k' * 199}… is not a key" in at.message


def test_a_long_name_that_can_be_told_is_told_whole() -> None:
    key = "k" * 200
    found = reported(below("zero_optimization", inner=f'{{"{key}": 1}}')).findings
    assert any(f"zero_optimization.{key} is" in finding.message for _, finding in found)


def test_more_than_can_be_told_makes_the_answer_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "MOST_FINDINGS", 3)

    def repeated(times: int) -> Report:
        return reported('{"train_batch_size": 8, "fp16": {}' + ', "fp16": {}' * times + "}")

    whole, cut = repeated(3), repeated(4)
    assert whole.complete
    assert not whole.failures
    assert not cut.complete
    rules = [finding.rule for _, finding in cut.findings]
    assert rules.count("duplicate-key") == 3
    (failure,) = cut.failures
    assert failure.subject == "ds.json"
    assert failure.message == "there is more than can be told of duplicate-key"
    assert "duplicate-key" not in cut.checks[0].judged
    others = [rule for rule in rules if rule != "duplicate-key"]
    assert others == [f.rule for _, f in whole.findings if f.rule != "duplicate-key"]


def test_what_nobody_asks_for_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "MOST_FINDINGS", 1)
    text = '{"train_batch_size": 8, "fp16": {}, "fp16": {}, "fp16": {}}'
    check = check_source(Source("ds.json", text), None, SETTINGS)
    others = [rule for rule in all_rules() if rule.meta.slug != "duplicate-key"]
    assert make_report([check], Policy(rules=others)).complete


def test_all_checks_of_a_call_share_what_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """One config under thousands of launches is told once for each of them."""
    monkeypatch.setattr(pairing, "MOST_FINDINGS", 10)
    more = ["unknown-key"]
    source = Source("ds.json", '{"train_batch_size": 8, "fp16": {"a": 1, "b": 1, "c": 1}}')
    one = Input(source, None, None, SETTINGS)
    assert [finding.rule for finding in one.check().findings] == ["world-size-unknown", *more * 3]
    checks = check_all([one] * 4)
    assert [len(check.findings) for check in checks] == [4, 4, 2, 0]
    assert [sorted(check.untold) for check in checks] == [
        [],
        [],
        more,
        [*more, "world-size-unknown"],
    ]
    assert len(make_report(checks, Policy()).failures) == 1


def test_a_rule_is_asked_for_no_more_than_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "MOST_CHARACTERS", 10 * len(KEY))
    report = reported(CONFIGS["repeated keys"])
    found = [finding for _, finding in report.findings if finding.rule == "duplicate-key"]
    assert 1 <= len(found) < 10


def test_the_exit_code(tmp_path: Path, dsguard: Dsguard) -> None:
    (tmp_path / "ds_config.json").write_text(CONFIGS["repeated keys"])
    outcome = dsguard("check ds_config.json -o json", tmp_path)
    assert outcome.code == 3
    told: dict[str, Any] = json.loads(outcome.out)
    assert told["summary"]["complete"] is False
    assert told["failures"][0]["subject"] == "ds_config.json"
    outcome = dsguard("check ds_config.json", tmp_path)
    assert "there is more than can be told of duplicate-key" in outcome.out
    assert "the answer is incomplete" in outcome.out


def test_a_file_with_more_than_can_be_told_is_not_fixed(
    tmp_path: Path, dsguard: Dsguard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The few that are told would be fixed one pass at a time, each as long as a check."""
    text = '{"train_batch_size": 8, "fp16": {"a": 1, "a": 1, "a": 1}}'
    config = tmp_path / "ds_config.json"
    config.write_text(text)
    monkeypatch.setattr(checking, "MOST_FINDINGS", 1)
    outcome = dsguard("check ds_config.json --fix", tmp_path)
    assert outcome.code == 3
    assert "it is left alone" in outcome.out
    assert config.read_text() == text
    monkeypatch.setattr(checking, "MOST_FINDINGS", 2)
    dsguard("check ds_config.json --fix", tmp_path)
    assert config.read_text() != text


def test_releases_are_not_compared_by_what_is_cut(
    tmp_path: Path, dsguard: Dsguard, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ds_config.json").write_text('{"train_batch_size": 8, "fp16": {"a": 1, "b": 1}}')
    asked = "upgrade-check ds_config.json --from 0.19.5 --to 0.19.8"
    assert dsguard(asked, tmp_path).code == 0
    monkeypatch.setattr(checking, "MOST_FINDINGS", 1)
    outcome = dsguard(asked, tmp_path)
    assert outcome.code == 3
    assert "there is more than can be told of unknown-key" in outcome.out
