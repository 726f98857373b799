"""Escapes, line ends and markup in keys, values, names and commands: no output passes them on."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from msgspec.structs import replace

from dsguard.cli.fixing import FixedConfig
from dsguard.model.source import Source
from tests.conftest import Dsguard
from tests.records.made import found, header, step, summary, write

EVIL = (
    "\x1b[2J\x1b]0;title\x07\r\n::error::planted\u202e\u2066"
    "</script><img src=x>%0A::stop-commands::x"
)
"""Clears the screen, names the window, reorders the line, breaks out of lines, pages and logs."""

CONFIG = (
    json.dumps(
        {
            "train_micro_batch_size_per_gpu": 0,
            f"k{EVIL}": 1,
            "fp16": {"enabled": f"v{EVIL}"},
            "optimizer": {"type": f"t{EVIL}", "params": {f"p{EVIL}": EVIL}},
            "zero_optimization": {"stage": EVIL, "cpu_offload": True},
        },
        ensure_ascii=False,
    )
    .replace("\x1b", "\\u001b")
    .replace("\x07", "\\u0007")
    .replace("\r\n", "\\r\\n")
)
NAME = f"ds{EVIL.replace('/', '|')}.json"
LAUNCH = (
    f"deepspeed --num_gpus {shlex.quote(EVIL)} {shlex.quote(f'train{EVIL[:40]}.py')} "
    f"--deepspeed_config {shlex.quote(NAME)} --learning_rate {shlex.quote(EVIL)}"
)


def harmless(text: str) -> str:
    """Nothing that a terminal acts on, and no line that a line of input has begun."""
    assert {char for char in text if not char.isprintable()} <= {"\n"}
    assert not any(line.lstrip().startswith("::error::planted") for line in text.split("\n"))
    return text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    try:
        (tmp_path / NAME).write_text(CONFIG, encoding="utf-8")
    except OSError:
        pytest.skip("this file system takes no such name")
    script = "#!/bin/bash\n" + LAUNCH.replace("\r\n", "\\\n") + "\n"
    (tmp_path / "run.sh").write_text(script, encoding="utf-8", newline="")
    (tmp_path / "ds.json").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "broken.json").write_text('{"a": 1' + EVIL, encoding="utf-8", newline="")
    key = json.dumps(EVIL)
    settings = (
        f'[tool.dsguard]\nselect = [{key}]\n{key} = 1\n[tool.dsguard.severity]\n{key} = "x"\n'
    )
    (tmp_path / "evil.toml").write_text(settings, encoding="utf-8")
    line = f"deepspeed --num_gpus 2 {shlex.quote('t' + EVIL[:20])} --deepspeed_config ds.json"
    job = f"[[tool.dsguard.job]]\nname = {key}\nlaunch = {json.dumps(line)}\n"
    (tmp_path / "jobs.toml").write_text(job, encoding="utf-8")
    entry = {"file": NAME, "pointer": f"/{EVIL}", "rule": "unknown-key", "message": EVIL}
    accepted = json.dumps({"version": 1, "findings": [entry]})
    (tmp_path / "accepted.json").write_text(accepted, encoding="utf-8")
    texts = {"message": EVIL, "file": EVIL, "help": EVIL, "rule": EVIL, "code": EVIL}
    (tmp_path / "cpu.json").write_text(
        f'{{"zero_optimization": {{"cpu_offload": true, "{EVIL[-30:]}": 1}}}}'
    )
    lines = [
        header(engine=EVIL, precision=EVIL, deepspeed=EVIL),
        step(1, findings=[found(**texts)]),
    ]
    write(tmp_path / "run.jsonl", *lines, summary(counts={EVIL: 1}, windows={"4": 1}))
    write(tmp_path / "odd.jsonl", header(started_at=EVIL))
    return tmp_path


NAMED = shlex.quote(NAME)
COMMANDS = (
    f"check {NAMED} -- {LAUNCH}",
    f"check {NAMED} -vv",
    f"check {NAMED} -o concise",
    f"check {NAMED} -o json",
    f"check {NAMED} -o sarif",
    f"check {NAMED} -o github",
    "check broken.json",
    "check broken.json -o github",
    "check run.sh",
    "check run.sh -o concise",
    "check ds.json --settings evil.toml",
    "check --settings jobs.toml",
    "check ds.json --baseline accepted.json",
    f"check no{NAMED}",
    f"check no{NAMED} -o github",
    f"facts {NAMED} -- {LAUNCH}",
    f"facts {NAMED} --explain optimizer -- {LAUNCH}",
    f"run --dry-run --fail-on never -- {LAUNCH}",
    f"run -- {LAUNCH}",
    f"upgrade-check {NAMED} --from 0.16.4",
    "baseline show --baseline accepted.json",
    f"baseline create {NAMED} --baseline made.json",
    "report run.jsonl",
    "report run.jsonl -o json",
    "report run.jsonl --html page.html",
    "report odd.jsonl",
    f"report no{NAMED}",
    f"diff no{NAMED} ds.json",
)


@pytest.mark.parametrize("line", COMMANDS, ids=range(len(COMMANDS)))
def test_every_output_is_harmless(dsguard: Dsguard, folder: Path, line: str) -> None:
    outcome = dsguard(line, folder)
    harmless(outcome.out)
    harmless(outcome.err)
    assert outcome.out or outcome.err


def test_a_diff_is_for_patch_in_a_pipe_and_for_eyes_on_a_terminal(
    dsguard: Dsguard, folder: Path
) -> None:
    """In a pipe the lines are those of the file; a name may never begin a line of its own."""
    text = '{"zero_optimization": {"cpu_offload": true}} // \x1b[2J\u202e\n'
    (folder / NAME).write_text(text, encoding="utf-8")
    diff = dsguard(f"check {NAMED} --diff --target 0.19.8", folder).out
    first, second, *_ = diff.splitlines()
    assert first.startswith("--- ds\\x1b[2J")
    assert second.startswith("+++ ds\\x1b[2J")
    assert f"-{text}" in diff
    old = Source("ds.json", text)
    new = replace(old, text=text.replace("true", "false"))
    shown = FixedConfig(None, old, new, (), 1).diff(color=False, terminal=True)
    assert harmless(shown).count("\\x1b[2J\\u202e") == 2


@pytest.mark.parametrize(
    "option",
    ["--hostfile", "--target", "--select", "--output-format", "--settings", "--baseline"],
)
def test_wrong_usage_repeats_words_harmlessly(dsguard: Dsguard, folder: Path, option: str) -> None:
    outcome = dsguard(f"check ds.json {option} {shlex.quote(f'x{EVIL}')}", folder)
    assert outcome.code == 2
    assert "\\x1b[2J" in harmless(outcome.err)
