"""Texts on which a pattern that tries again from every place would not come to an end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dsguard.checking import Settings, check_source
from dsguard.launch.arguments import _flag
from dsguard.launch.shell.find import find_launches
from dsguard.launch.words import Word
from dsguard.model.report import Target, TargetOrigin
from dsguard.model.source import Source, Span
from dsguard.rules.document.unquoted_literal import _without_comma_and_comment
from dsguard.rules.frontend.optimizer_clash import _is
from dsguard.script.interpreter import _PARSER_WORDS
from dsguard.settings.find import find_settings

MANY = 300_000


@pytest.mark.parametrize(
    "value",
    ["A" + "_a" * MANY + "!,", "A" + "_" * MANY + "!,", "a" + " " * MANY + "b,", "a #" * MANY],
    ids=["parts", "underscores", "blanks", "comments"],
)
def test_a_string_without_quotes(value: str) -> None:
    source = Source("ds.json", f"{{\n  train_batch_size: {value}\n}}")
    report = check_source(source, None, Settings(Target("0.19.8", TargetOrigin.OPTION)))
    assert "unquoted-literal" in {finding.rule for finding in report.findings}


@pytest.mark.parametrize(
    ("text", "core"),
    [
        ("8,", "8"),
        ("8 ,", "8"),
        ("8,,", "8,"),
        ("8, # a, b", "8"),
        ("8 // c", "8"),
        ("8,/* c */", "8"),
        ("a#b", "a#b"),
        ("a,  ,# c", "a,"),
        (f"8{' ' * 200},{' ' * 200}# c", "8"),
    ],
)
def test_what_a_string_without_quotes_swallowed(text: str, core: str) -> None:
    assert _without_comma_and_comment(text) == core


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ("#dsguard tool.dsguard tool dsguard\n" + "\n" * MANY + "[broken\n", False),
        ("# dsguard\n#" + "tool " * MANY, False),
        ("#dsguard\n" + "\n" * MANY + " [ tool . dsguard]\n[broken\n", True),
        ("[tool]\ndsguard = {}\n", True),
        ('["tool"."dsguard"]\n', True),
        ("[tool.other]\nx = 'dsguard'\n", False),
    ],
    ids=["blank-lines", "words", "broken", "table", "quoted", "other"],
)
def test_settings(text: str, ours: bool, tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(text)
    assert find_settings(tmp_path) == (path if ours else None)


@pytest.mark.parametrize(
    ("text", "writes"),
    [
        (">" * MANY, False),
        ("cp " * MANY, False),
        ("cat > ds.json", True),
        ("cp a.json ds.json; x", True),
        ("cat ds.json > other", False),
        ("echo > x; cat ds.json", False),
        ("tee ds.json.bak", False),
    ],
)
def test_a_script_that_writes_a_config(text: str, writes: bool) -> None:
    script = f"{text}\ndeepspeed train.py --deepspeed_config ds.json\n"
    found = find_launches(Source("run.sh", script)).launches
    assert any(launch.writes("ds.json") for launch in found) is writes


@pytest.mark.parametrize(
    ("text", "flag"),
    [("-" + "1" * MANY + "x", True), ("-1.5e3", False), ("-1.", False), ("-1x", True)],
)
def test_a_negative_number_is_no_flag(text: str, flag: bool) -> None:
    assert (_flag(Word(text, Span(0, len(text)))) is not None) is flag


@pytest.mark.parametrize(
    ("name", "scheduler"),
    [
        ("transformers." + "get_" * MANY, False),
        ("transformers." + "get_" * MANY + "sched", True),
        ("diffusers.x.get_cosine_schedule", True),
        ("transformers.get.sched", False),
    ],
    ids=["no", "yes", "real", "other"],
)
def test_a_call_that_makes_a_scheduler(name: str, scheduler: bool) -> None:
    assert _is("scheduler", name) is scheduler


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("parse_" * MANY, False),
        ("parse_" * MANY + "args", True),
        ("parse_known_args()", True),
        ("parse_.args", False),
    ],
    ids=["no", "yes", "real", "other"],
)
def test_a_call_that_parses(text: str, found: bool) -> None:
    assert (re.search(_PARSER_WORDS, text) is not None) is found
