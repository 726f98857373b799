from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dsguard.model.fact import Origin, OriginKind
from dsguard.model.finding import Because, Fix, Safety, Severity
from dsguard.model.report import Failure, Report, TargetOrigin
from dsguard.render.concise import render_concise
from dsguard.render.text import render_text

Expect = Callable[[str, str], None]
SGR = re.compile(r"\x1b\[[0-9;]*m")


def text(report: Report, **options: Any) -> str:
    return render_text(report, **{"color": False, "unicode": True, **options})


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("story", {}),
        ("story-80", {"columns": 80}),
        ("story-50-ascii", {"columns": 50, "unicode": False}),
        ("story-color", {"color": True, "columns": 130}),
        ("story-verbose", {"verbose": 1}),
    ],
)
def test_the_story(build: Any, expect: Expect, name: str, options: dict[str, Any]) -> None:
    expect(f"text-{name}.txt", text(build.story(), **options))


def test_several_checks_and_failures(build: Any, expect: Expect) -> None:
    expect("text-several.txt", text(build.several(), columns=100, verbose=1))


def test_quiet_shows_errors_only(build: Any, expect: Expect) -> None:
    expect("text-several-quiet.txt", text(build.several(), columns=100, verbose=1, quiet=True))


def test_quiet_says_nothing_where_there_is_no_error(build: Any) -> None:
    warning = build.finding(build.at(build.config(), "32"), severity=Severity.WARNING)
    assert text(build.report(warning), quiet=True) == ""
    assert text(Report((build.check(),), crashed=True), quiet=True) != ""


def test_a_picture_with_reasons_in_other_files(build: Any, expect: Expect) -> None:
    config = build.config("\n" * 9 + '\t"train_batch_size": 30,\n\n\n"模型": "é" // 4\n')
    hosts = build.config("node-1 slots=4\nnode-2 slots=2\n", "hosts.txt")
    job = build.config("#!/bin/sh\ntorchrun --nnodes 2 \\\n  train.py\n", "run.sh")
    finding = build.finding(
        build.at(config, "30", "/train_batch_size"),
        "30 is not a multiple of 4",
        because=(
            Because("slots", 2, Origin(OriginKind.HOSTFILE, build.at(hosts, "2\n"))),
            Because("slots", 4, Origin(OriginKind.HOSTFILE, build.at(hosts, "4"))),
            Because("accents", "é", Origin(OriginKind.CONFIG, build.at(config, '"é"'))),
            Because("nodes", 2, build.argument(job, "--nnodes 2")),
            Because("stage", 0, build.default()),
            Because("world_size", 8, Origin(OriginKind.OPTION, argument="--world-size")),
        ),
        fix=Fix("choose 24 or 32", Safety.DISPLAY),
    )
    expect("text-files.txt", text(build.report(finding)))
    expect("text-files-ascii.txt", text(build.report(finding), unicode=False))


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (TargetOrigin.OPTION, "0.19.8 (as --target says)"),
        (TargetOrigin.INSTALLED, "0.19.8 (installed here)"),
        (TargetOrigin.NEWEST_KNOWN, "0.19.8 (the newest that dsguard knows)"),
    ],
)
def test_the_last_line_names_the_target(build: Any, origin: TargetOrigin, words: str) -> None:
    report = Report((build.check(origin=origin),))
    assert text(report) == f"No problems found in 1 file; judged by DeepSpeed {words}\n"


@pytest.mark.parametrize(
    ("names", "amount"),
    [(["a", "b"], "2 files"), (["a", "a"], "2 checks of 1 file"), ([None], "1 launch command")],
)
def test_the_last_line_says_how_much(build: Any, names: list[str | None], amount: str) -> None:
    report = Report(tuple(build.check(config=name) for name in names))
    assert text(report).startswith(f"No problems found in {amount};")


def test_the_last_line_says_that_the_answer_is_incomplete(build: Any) -> None:
    assert "found in 1 file, the answer is incomplete;" in text(
        Report((build.check(),), crashed=True)
    )
    nothing = Report((), (Failure("x", "no such file"),))
    assert (
        text(nothing) == "error: x: no such file\n\nNothing was checked, the answer is incomplete\n"
    )


def test_findings_stand_in_the_order_of_the_file_with_the_launch_last(build: Any) -> None:
    config, launch = build.config(), build.launch()
    places = [build.at(launch, "torchrun"), build.at(config, "stage"), build.at(config, "32")]
    findings = [build.finding(at, severity=Severity.INFO) for at in places]
    report = build.report(*findings, build.finding(places[2], code="DSG999"))
    lines = render_concise(report).splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        "ds_config.json:2:23",
        "ds_config.json:2:23",
        "ds_config.json:6:6",
        "<launch command>:1:1",
    ]
    assert [line.split(" ")[1] for line in lines[:2]] == ["error[DSG999]", "info[DSG101]"]


def test_concise(build: Any, expect: Expect) -> None:
    expect("concise-several.txt", render_concise(build.several()))
    expect("concise-several-ascii.txt", render_concise(build.several(), unicode=False))
    assert render_concise(Report(())) == ""


@pytest.mark.parametrize("options", [{}, {"columns": 60}, {"verbose": 1, "unicode": False}])
def test_colour_changes_nothing_but_colour(build: Any, options: dict[str, Any]) -> None:
    coloured = text(build.several(), color=True, **options)
    assert coloured != text(build.several(), **options)
    assert SGR.sub("", coloured) == text(build.several(), **options)


def test_markup_and_highlighting_are_not_interpreted(build: Any) -> None:
    config = build.config('{"[bold]x[/bold] :smile: 12 http://a.b": 1}')
    message = "[red]no[/red] [/] :warning: 'quoted' 12"
    coloured = text(build.report(build.finding(build.at(config, "1"), message)), color=True)
    assert f"\x1b[1m: {message}\x1b[0m" in coloured
    assert "".join(coloured.splitlines()[3].split("\x1b[0m")[-1:]) == config.text


@settings(max_examples=150)
@given(words=st.text(max_size=30), color=st.booleans(), unicode=st.booleans())
def test_no_text_can_break_the_output(build: Any, words: str, color: bool, unicode: bool) -> None:
    def report(words: str) -> Report:
        config = build.config(f'{{"k{words}": 32}}'.replace("\n", " "), f"{words}.json")
        at = build.at(config, "32", f"/k{words}")
        launch = build.launch(f"run {words} --n 4".replace("\n", " "))
        finding = build.finding(
            at,
            f"m {words}",
            because=(
                Because(f"f{words}", words, Origin(OriginKind.DEFAULT, whose=words)),
                Because("n", words, build.argument(launch, "--n 4")),
            ),
            fix=Fix(f"t {words}", Safety.SAFE),
            help=f"h {words}",
        )
        check = replace(build.check(finding, config=config.name), launch=f"l {words}")
        return Report((check, check), (Failure(f"s{words}", f"m {words}", f"h {words}"),))

    shown = text(report(words), color=color, unicode=unicode, columns=5000)
    lines = SGR.sub("", shown) if color else shown
    assert lines.replace("\n", "").isprintable()
    assert unicode or lines.isascii()
    assert lines.count("\n") == text(report("w"), columns=5000).count("\n")
    concise = render_concise(report(words), unicode=unicode)
    assert concise.replace("\n", "").isprintable()
    assert concise.count("\n") == 3
    shown.encode("utf-8")
