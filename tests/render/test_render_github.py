from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsguard.model.finding import Severity
from dsguard.model.report import Failure, Report
from dsguard.render.characters import visible
from dsguard.render.github import render_github


def read(line: str) -> tuple[str, dict[str, str], str]:
    """A workflow command as the runner reads it: its name, its properties and its message."""
    found = re.fullmatch(r"::(\w+) ([^:]*)::(.*)", line)
    assert found is not None, line

    def unescape(text: str, signs: str) -> str:
        for sign in signs:
            text = text.replace(f"%{ord(sign):02X}", sign)
        return text.replace("%25", "%")

    given = dict(item.split("=", 1) for item in found[2].split(","))
    properties = {key: unescape(value, "\r\n:,") for key, value in given.items()}
    return found[1], properties, unescape(found[3], "\r\n")


def test_several(build: Any, expect: Any) -> None:
    expect("github-several.txt", render_github(build.several()))
    assert render_github(Report(())) == ""


@pytest.mark.parametrize(
    ("severity", "command"),
    [(Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.INFO, "notice")],
)
def test_severities(build: Any, severity: Severity, command: str) -> None:
    finding = build.finding(build.at(build.config(), "32"), severity=severity)
    name, properties, message = read(render_github(build.report(finding)).strip())
    assert name == command
    assert properties == {
        "file": "ds_config.json",
        "line": "2",
        "endLine": "2",
        "col": "23",
        "endColumn": "25",
        "title": "DSG101 unknown-key",
    }
    assert message == "ds_config.json:2:23: something is wrong"


def test_columns_are_left_out_over_several_lines(build: Any) -> None:
    config = build.config()
    finding = build.finding(build.at(config, config.text[2:60]))
    _, properties, _ = read(render_github(build.report(finding)).strip())
    assert (properties["line"], properties["endLine"]) == ("2", "3")
    assert not {"col", "endColumn"} & set(properties)


def test_the_launch_is_no_file(build: Any) -> None:
    finding = build.finding(build.at(build.launch(), "--batch_size 1"))
    _, properties, message = read(render_github(build.report(finding)).strip())
    assert set(properties) == {"title"}
    assert message.startswith("<launch command>:1:38: ")


def test_failures_say_the_way_out() -> None:
    report = Report((), (Failure("a:b,c.json", "is 100% empty", "fill it"),))
    _, properties, message = read(render_github(report).strip())
    assert (properties, message) == (
        {"title": "dsguard"},
        "a:b,c.json: is 100% empty\nhelp: fill it",
    )


@settings(max_examples=200)
@given(words=st.text(alphabet=st.characters(codec=None), max_size=20))
def test_no_text_starts_another_command(build: Any, words: str) -> None:
    config = build.config(name=words)
    finding = build.finding(build.at(config, "32"), words, help=words)
    text = render_github(build.report(finding))
    text.encode("utf-8")
    (line,) = text.splitlines()
    _, properties, message = read(line)
    assert properties["file"] == visible(words, unicode=True)
    assert len(message.split("\n")) == (2 if words else 1)
