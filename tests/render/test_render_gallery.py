"""Every kind of report in every format, to be looked at.

The expected outputs lie under ``expected/gallery``: one file for each kind, with what each format
makes of it. ``DSGUARD_UPDATE=1 pytest tests/render`` rewrites them; read the difference.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from dsguard.api import check_text
from dsguard.model.fact import Origin, OriginKind
from dsguard.model.finding import Because, Edit, Fix, Safety, Severity
from dsguard.model.report import Report
from dsguard.model.source import Source
from dsguard.render.concise import render_concise
from dsguard.render.github import render_github
from dsguard.render.json_report import render_json
from dsguard.render.sarif import render_sarif
from dsguard.render.text import render_text

TARGET = "0.19.8"


def clean(build: Any) -> Report:
    return check_text('{"train_micro_batch_size_per_gpu": 1}', name="ds.json", target=TARGET)


def one(build: Any) -> Report:
    config = build.config()
    at = build.at(config, "32", "/train_batch_size")
    fix = Fix("write 30", Safety.UNSAFE, (Edit(*at.span, "30"),))
    return build.report(build.finding(at, "32 is not a multiple of 30", fix=fix))


def many(build: Any) -> Report:
    return build.several()


def syntax_error(build: Any) -> Report:
    return check_text('{\n  "fp16": {"enabled": true,\n', name="ds.json", target=TARGET)


def launch_span(build: Any) -> Report:
    launch = build.launch()
    asked = build.argument(launch, "--gradient_accumulation_steps 8")
    because = Because("gradient_accumulation_steps", 8, asked)
    finding = build.finding(build.at(launch, "--batch_size 1"), because=(because,))
    return Report((build.check(finding, launch=launch.text),))


def wide_characters(build: Any) -> Report:
    text = '{"模型": "大語言模型", "e\u0301": "👩‍🚀", "train_batch_size": 32}\n'
    config = build.config(text, "配置/ds.json")
    finding = build.finding(build.at(config, "32"), "模型 is 大 and 32 × 2 ≠ 60 → no", help="看")
    return Report((build.check(finding, config=config.name),))


def tabs(build: Any) -> Report:
    return build.report(build.finding(build.at(build.config('{\n\t"a":\t1,\n\t\t"b":\t2}\n'), "2")))


def line_ends(build: Any) -> Report:
    """CRLF, and a finding that reaches from one line into the next."""
    config = build.config('{\r\n  "a": 1,\r\n  "b": {\r\n    "c": 2\r\n  }\r\n}\r\n')
    block = build.at(config, '{\r\n    "c": 2\r\n  }')
    end = build.at(config, "\r\n  }")
    return build.report(build.finding(block), build.finding(end, "a comma is missing here"))


def control_characters(build: Any) -> Report:
    """What would move the cursor, reverse the line or end a workflow command."""
    config = build.config('{"\x1b[31m\u202e": 32}\n', "a%b:c,d\u2028.json")
    return build.report(build.finding(build.at(config, "32"), "100%\n::error::no", help="\x07"))


def no_file(build: Any) -> Report:
    config = Source("<stdin>", '{"a": 1}', is_file=False)
    origin = Origin(OriginKind.OPTION, argument="--world-size")
    at = build.at(config, "1", "/a")
    finding = build.finding(at, because=(Because("world_size", 4, origin),), severity=Severity.INFO)
    return Report((build.check(finding, config="<stdin>"),))


KINDS = [
    clean,
    one,
    many,
    syntax_error,
    launch_span,
    wide_characters,
    tabs,
    line_ends,
    control_characters,
    no_file,
]


def json_findings(report: Report) -> str:
    """The JSON report without the facts, which have pictures of their own."""
    data = json.loads(render_json(report))
    for check in data["checks"]:
        del check["facts"], check["skipped_rules"]
    return json.dumps(data, indent=1, ensure_ascii=True)


def sarif_results(report: Report) -> str:
    """SARIF without the pages of the rules."""
    (run,) = json.loads(render_sarif(report))["runs"]
    for rule in run["tool"]["driver"]["rules"]:
        rule.pop("help", None)
    kept = {"rules": run["tool"]["driver"]["rules"]}
    kept |= {key: run[key] for key in ("invocations", "artifacts", "results")}
    return json.dumps(kept, indent=1, ensure_ascii=True)


FORMATS: dict[str, Callable[[Report], str]] = {
    "text": lambda report: render_text(report, color=False, unicode=True, columns=80),
    "text, not UTF-8": lambda report: render_text(report, color=False, unicode=False, columns=80),
    "text, 40 columns": lambda report: render_text(report, color=False, unicode=True, columns=40),
    "concise": render_concise,
    "concise, not UTF-8": lambda report: render_concise(report, unicode=False),
    "github": render_github,
    "json": json_findings,
    "sarif": sarif_results,
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_gallery(
    build: Any, expect: Callable[[str, str], None], kind: Callable[[Any], Report]
) -> None:
    report = kind(build)
    pictures = [f"==== {name}\n{make(report)}" for name, make in FORMATS.items()]
    text = "".join(f"{picture.rstrip()}\n\n" for picture in pictures)
    for name, make in FORMATS.items():
        made = make(report)
        assert "\x1b" not in made
        if "not UTF-8" in name:
            assert made.isascii()
    expect(f"gallery/{kind.__name__.replace('_', '-')}.txt", text)
