from __future__ import annotations

import json
from pathlib import PureWindowsPath
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import ValidationError
from msgspec.structs import replace

from dsguard.api import check_text
from dsguard.model.fact import Origin, OriginKind
from dsguard.model.finding import Because, Edit, Finding, Fix, Safety, Severity
from dsguard.model.report import Failure, Report
from dsguard.model.source import Source
from dsguard.render.sarif import render_sarif
from tests.conftest import Dsguard
from tests.contract.rule_cases import RuleCase, rule_cases
from tests.sarif import read_sarif, validator


def run_of(report: Report) -> dict[str, Any]:
    return read_sarif(render_sarif(report))


def only(report: Report) -> dict[str, Any]:
    (result,) = run_of(report)["results"]
    return dict(result)


def test_it_is_valid_when_empty() -> None:
    run = run_of(Report(()))
    assert (run["results"], run["tool"]["driver"]["rules"]) == ([], [])
    assert run["invocations"][0]["executionSuccessful"] is True


def test_the_schema_refuses_what_is_no_sarif(build: Any) -> None:
    log = json.loads(render_sarif(build.story()))
    log["runs"][0]["results"][0]["region"] = {}
    with pytest.raises(ValidationError):
        validator().validate(log)


def test_whole_reports_are_valid(build: Any) -> None:
    for report in (build.story(), build.several(), Report((), crashed=True)):
        run_of(report)


BAD = {case.slug: case for case in rule_cases() if case.bad}


@pytest.mark.parametrize("case", BAD.values(), ids=lambda case: case.slug)
def test_every_rule_is_valid_with_its_page_as_help(case: RuleCase, dsguard: Dsguard) -> None:
    out = dsguard(case.line.replace("-o concise", "-o sarif", 1), case.config.parent).out
    run = read_sarif(out)
    rules = run["tool"]["driver"]["rules"]
    (rule,) = (rule for rule in rules if rule["name"] == case.slug)
    assert rule["help"]["markdown"].startswith(f"# {case.slug} ({rule['id']})")
    assert rule["shortDescription"]["text"].endswith(".")
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    marks = [result["partialFingerprints"]["dsguard/v1"] for result in run["results"]]
    assert len(set(marks)) == len(marks)


def test_severities(build: Any) -> None:
    at = build.at(build.config(), "32")
    levels = [only(build.report(build.finding(at, severity=s)))["level"] for s in Severity]
    assert levels == ["error", "warning", "note"]


def test_inputs_that_were_not_read_make_the_run_unsuccessful(build: Any) -> None:
    failures = (Failure("gone.json", "does not exist"), Failure("", "nothing to check"))
    invocation = run_of(Report((build.check(),), failures))["invocations"][0]
    assert invocation["executionSuccessful"] is False
    assert [it["message"]["text"] for it in invocation["toolExecutionNotifications"]] == [
        "gone.json: does not exist",
        "nothing to check",
    ]


def test_columns_count_code_points(build: Any) -> None:
    config = build.config('{"模型": "😀", "train_batch_size": 32}\r\n')
    result = only(build.report(build.finding(build.at(config, "32"))))
    assert result["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 1,
        "startColumn": 33,
        "endLine": 1,
        "endColumn": 35,
    }
    assert run_of(build.report())["columnKind"] == "unicodeCodePoints"


def test_because_in_files_is_related_and_the_rest_is_in_the_message(build: Any) -> None:
    config, hosts = build.config(), build.config("node slots=4\n", "hosts/all.txt")
    finding = build.finding(
        build.at(config, "32", "/train_batch_size"),
        because=(
            Because("slots", 4, Origin(OriginKind.HOSTFILE, build.at(hosts, "4"))),
            Because("world_size", 4, build.argument(build.launch(), "--nproc_per_node=4")),
        ),
    )
    result = only(build.report(finding))
    (related,) = result["relatedLocations"]
    assert related["message"]["text"] == "slots is 4"
    assert related["physicalLocation"]["artifactLocation"]["uri"] == "hosts/all.txt"
    assert "because: world_size is 4 (--nproc_per_node)" in result["message"]["text"]
    assert result["locations"][0]["logicalLocations"] == [
        {"fullyQualifiedName": "/train_batch_size", "kind": "property"}
    ]


def test_a_finding_in_the_launch_is_shown_at_the_config(build: Any) -> None:
    finding = build.finding(build.at(build.launch(), "--batch_size 1"))
    result = only(build.report(finding))
    (location,) = result["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "ds_config.json"
    assert location["logicalLocations"] == [{"fullyQualifiedName": "<launch command>"}]
    assert "in <launch command>:1:38" in result["message"]["text"]
    alone = only(Report((build.check(finding, config=None),)))
    assert "physicalLocation" not in alone["locations"][0]


def test_a_config_from_standard_input_is_no_artifact(build: Any) -> None:
    source = Source("<stdin>", '{"a": 1}', is_file=False)
    finding = build.finding(build.at(source, '"a"'))
    run = run_of(Report((build.check(finding, config="<stdin>"),)))
    assert run["artifacts"] == []
    assert "physicalLocation" not in run["results"][0]["locations"][0]


def applied(result: dict[str, Any], text: str) -> str:
    """The text after the first fix of a result, as an editor applies it."""
    (change,) = result["fixes"][0]["artifactChanges"]
    lines = text.split("\n")

    def offset(region: dict[str, int], which: str) -> int:
        before = sum(len(line) + 1 for line in lines[: region[f"{which}Line"] - 1])
        return before + region[f"{which}Column"] - 1

    for it in reversed(change["replacements"]):
        region = it["deletedRegion"]
        start, end = offset(region, "start"), offset(region, "end")
        text = text[:start] + it["insertedContent"]["text"] + text[end:]
    return text


def test_fixes_are_replacements(build: Any) -> None:
    config = build.config('{\r\n  "é😀": 1, "fp16": True\r\n}\r\n')
    at = build.at(config, "True")
    edits = (
        Edit(at.span.start, at.span.end, "true"),
        Edit(len(config.text), len(config.text), "x"),
    )
    finding = build.finding(at, fix=Fix("write true", Safety.SAFE, edits))
    result = only(build.report(finding))
    assert applied(result, config.text) == config.text.replace("True", "true") + "x"
    assert result["fixes"][0]["properties"] == {"safety": "safe"}
    shown = replace(finding, fix=Fix("choose", Safety.DISPLAY))
    assert "fixes" not in only(build.report(shown))


def test_one_config_under_two_launches_is_said_once(build: Any) -> None:
    finding = build.finding(build.at(build.config(), "32"))
    report = Report((build.check(finding, launch="a"), build.check(finding, launch="b")))
    run = run_of(report)
    assert (len(run["results"]), len(run["artifacts"])) == (1, 1)


def test_fingerprints_stay_while_lines_move() -> None:
    def marks(text: str) -> list[str]:
        report = check_text(text, name="ds.json", target="0.19.8")
        results = run_of(report)["results"]
        return sorted(result["partialFingerprints"]["dsguard/v1"] for result in results)

    text = '{"train_batch_sise": 8, "steps_per_prin": 1, "train_batch_size": 8}'
    moved = text.replace("{", '{\n\n  "steps_per_print": 10,\n')
    assert marks(text) == marks(moved)
    assert marks(text) != marks(text.replace("steps_per_prin", "step_per_print"))


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        ("./conf/../conf/ds.json", "conf/../conf/ds.json"),
        ("a b/100%.json", "a%20b/100%25.json"),
        ("c:ds.json", "c%3Ads.json"),
        ("/x/ds.json", "file:///x/ds.json"),
        ("模型.json", "%E6%A8%A1%E5%9E%8B.json"),
    ],
)
def test_names_become_uris(build: Any, name: str, uri: str) -> None:
    finding = build.finding(build.at(build.config(name=name), "32"))
    artifact = only(build.report(finding))["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact["uri"] == uri
    assert ("uriBaseId" in artifact) == (not uri.startswith("file:"))


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        ("conf\\ds config.json", "conf/ds%20config.json"),
        ("C:\\x\\ds.json", "file:///C:/x/ds.json"),
        ("D:/x/ds.json", "file:///D:/x/ds.json"),
    ],
)
def test_names_of_windows(build: Any, monkeypatch: pytest.MonkeyPatch, name: str, uri: str) -> None:
    monkeypatch.setattr("dsguard.render.sarif.PurePath", PureWindowsPath)
    test_names_become_uris(build, name, uri)


@settings(max_examples=100)
@given(words=st.text(alphabet=st.characters(codec=None), max_size=20))
def test_any_text_survives(build: Any, words: str) -> None:
    config = build.config(name=words)
    finding: Finding = build.finding(
        build.at(config, "32", words),
        words,
        because=(Because(words, words, Origin(OriginKind.HOSTFILE, build.at(config, "32"))),),
        fix=Fix(words, Safety.SAFE, (Edit(0, 1, words),)),
    )
    text = render_sarif(Report((build.check(finding, config=words),)))
    text.encode("utf-8")
    (result,) = read_sarif(text)["results"]
    assert result["message"]["text"].startswith(words)
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.isascii()
    assert not urlsplit(uri).scheme or words.startswith("/")
    assert unquote(uri, errors="surrogatepass").lstrip("/.") in (words.lstrip("/."), uri)
