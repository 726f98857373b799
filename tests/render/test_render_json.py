from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from dsguard.model.fact import Candidate, Known, Origin, OriginKind
from dsguard.model.finding import Because, Edit, Fix, Safety
from dsguard.model.report import Report
from dsguard.render.json_report import ReportV1, render_json
from dsguard.render.rule_page import HOME, rule_url
from dsguard.render.values import json_text

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = json.loads((ROOT / "docs" / "report-v1.schema.json").read_text(encoding="utf-8"))


def strict(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def closed(schema: Any) -> Any:
    """The schema with every object closed, so that a key it does not describe fails."""
    if isinstance(schema, dict):
        schema = {key: closed(value) for key, value in schema.items()}
        if "properties" in schema and schema.get("type") == "object":
            schema["additionalProperties"] = False
        return schema
    return [closed(item) for item in schema] if isinstance(schema, list) else schema


VALIDATOR = Draft202012Validator(closed(PUBLISHED))


def rendered(report: Report) -> Any:
    data = strict(render_json(report))
    VALIDATOR.validate(data)
    return data


def test_the_story(build: Any, expect: Callable[[str, str], None]) -> None:
    expect("report-story.json", render_json(build.story()))


def test_reports_are_valid_by_the_published_schema(build: Any) -> None:
    for report in (build.story(), build.several(), Report(()), Report((), crashed=True)):
        rendered(report)


def test_it_is_laid_out_as_one_document(build: Any) -> None:
    for report in (build.story(), build.several(), Report(()), Report((), crashed=True)):
        text = render_json(report)
        data = strict(text)
        assert text == json_text(data) + "\n"
        assert list(data) == list(ReportV1.model_fields)


def test_the_schema_refuses_what_is_no_report(build: Any) -> None:
    for path, value in [
        (("version",), 2),
        (("findings", 0, "severity"), "fatal"),
        (("findings", 0, "code"), "E1"),
        (("checks", 0, "facts", "world_size", "state"), "guessed"),
        (("checks", 0, "facts", "world_size", "origin", "line"), None),
        (("summary", "error"), -1),
        (("findings", 0, "invented"), 1),
    ]:
        data = rendered(build.story())
        at = data
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value
        assert not VALIDATOR.is_valid(data), path


def test_the_keys_of_the_contract(build: Any) -> None:
    data = rendered(build.story())
    assert list(data) == ["version", "tool", "checks", "findings", "failures", "summary"]
    (check,) = data["checks"]
    assert check["target"] == {"deepspeed": "0.19.8", "origin": "newest known"}
    assert check["facts"]["gradient_accumulation_steps"] == {
        "state": "known",
        "value": 1,
        "origin": {
            "kind": "config",
            "file": "ds_config.json",
            "pointer": "/gradient_accumulation_steps",
            "line": 3,
            "column": 34,
        },
        "ignored": [
            {"value": 8, "origin": {"kind": "launch", "argument": "--gradient_accumulation_steps"}}
        ],
    }
    assert check["facts"]["scheduler"]["value"] is None
    finding = data["findings"][0]
    assert finding["range"] == {
        "start": {"line": 3, "column": 34},
        "end": {"line": 3, "column": 35},
    }
    assert finding["fix"] == {
        "title": "set it to 8 in ds_config.json",
        "safety": "unsafe",
        "edits": [{"start": 61, "end": 62, "text": "8"}],
    }
    assert data["summary"] == {
        "error": 1,
        "warning": 1,
        "info": 0,
        "suppressed": 0,
        "baselined": 0,
        "complete": True,
    }


def test_a_finding_in_the_launch_points_into_the_launch_text(build: Any) -> None:
    data = rendered(build.story())
    finding = data["findings"][1]
    assert (finding["file"], finding["pointer"], finding["fix"]) == (None, None, None)
    start, end = (finding["range"][side]["column"] - 1 for side in ("start", "end"))
    assert data["checks"][finding["check"]]["launch"][start:end] == "--batch_size 1"


def test_a_config_from_standard_input_is_a_file(build: Any) -> None:
    from dsguard.model.source import Source

    source = Source("<stdin>", '{"a": 1}', is_file=False)
    check = build.check(build.finding(build.at(source, '"a"', "/a")), config="<stdin>")
    (finding,) = rendered(Report((check,)))["findings"]
    assert (finding["file"], finding["pointer"]) == ("<stdin>", "/a")


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, 10**9999, "\ud800", {"a": [()]}],
    ids=["NaN", "Infinity", "-Infinity", "huge", "surrogate", "nested"],
)
def test_any_value_becomes_standard_json(build: Any, value: Any) -> None:
    candidate = Candidate(value, build.default())
    fact = Known(value, build.default(), (candidate,))
    finding = build.finding(
        build.at(build.config(), "32"), because=(Because("x", value, build.default()),)
    )
    text = render_json(Report((build.check(finding, facts={"optimizer": fact}),)))
    text.encode("utf-8")
    VALIDATOR.validate(strict(text))


@settings(max_examples=100)
@given(words=st.text(alphabet=st.characters(codec=None), max_size=20))
def test_any_text_survives_and_nothing_raw_reaches_the_terminal(build: Any, words: str) -> None:
    config = build.config(name=words)
    at = build.at(config, "32", words)
    finding = build.finding(
        at,
        words,
        because=(Because(words, {words: words}, Origin(OriginKind.LAUNCH, at, words)),),
        fix=Fix(words, Safety.SAFE, (Edit(0, 1, words),)),
    )
    text = render_json(Report((build.check(finding, config=words, launch=words),)))
    text.encode("utf-8")
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in text.replace("\n", ""))
    data = strict(text)
    VALIDATOR.validate(data)
    (found,) = data["findings"]
    assert [found["message"], found["file"], found["pointer"]] == [words, words, words]
    assert found["because"][0]["value"] == {words: words}


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if "properties" in schema:
            yield schema
        for value in schema.values():
            yield from objects(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from objects(item)


def test_the_schema_describes_every_property() -> None:
    Draft202012Validator.check_schema(PUBLISHED)
    assert PUBLISHED["title"] == "dsguard report"
    assert PUBLISHED["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "$id" not in PUBLISHED
    bare = [
        name
        for schema in objects(PUBLISHED)
        for name, field in schema["properties"].items()
        if not field.get("description")
    ]
    assert bare == []


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "tools" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_published_schema_is_what_the_models_say(generate: ModuleType) -> None:
    assert json.loads(generate.report_schema_file()) == PUBLISHED


def test_generate_writes_and_checks(
    generate: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate.main(["--check"], root=tmp_path) == 1
    assert not list(tmp_path.iterdir())
    assert generate.main([], root=tmp_path) == 0
    assert generate.main(["--check"], root=tmp_path) == 0
    capsys.readouterr()
    schema = tmp_path / "docs" / "report-v1.schema.json"
    schema.write_text(schema.read_text(encoding="utf-8").replace("Always dsguard.", "Changed."))
    assert generate.main(["--check"], root=tmp_path) == 1
    shown = capsys.readouterr().out
    assert "docs/report-v1.schema.json is out of date" in shown
    assert '-          "description": "Changed.",' in shown
    assert '+          "description": "Always dsguard.",' in shown


def test_the_address_of_a_rule_is_that_of_its_page() -> None:
    path = rule_url("batch-size-mismatch").removeprefix(f"{HOME}/blob/main/")
    assert (ROOT / path).is_file()
