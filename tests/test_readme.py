"""The README tells the truth: its commands are the ones CI runs, its output is the program's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import FIXTURES, ROOT, UPDATE, Dsguard

README = ROOT / "README.md"
STORY = FIXTURES / "runs" / "accumulation-ignored"


def test_ci_runs_the_readmes_test_command() -> None:
    commands = re.findall(r"^```sh\n(pip install -c .*)\n```$", README.read_text(), re.MULTILINE)
    (command,) = commands
    install, _, test = command.partition(" && ")
    script = (ROOT / ".ci" / "run").read_text()
    assert install.removeprefix("pip install") in script
    assert test.removeprefix("python ") in script


def test_the_first_command_checks_a_shipped_example() -> None:
    assert "cd fixtures/runs/accumulation-ignored && dsguard check ds_config.json" in (
        README.read_text()
    )
    assert (STORY / "launch.txt").is_file()


@pytest.mark.parametrize("command", ["check", "facts"])
def test_the_output_shown_is_real(command: str, dsguard: Dsguard) -> None:
    launch = (STORY / "launch.txt").read_text()
    out = dsguard(f"{command} ds_config.json --target 0.19.8 -- {launch}", STORY).out
    # The last line says which DeepSpeed is installed, which differs from reader to reader.
    lines = [line.rstrip() for line in out.splitlines() if "judged by" not in line]
    block = "```text\n" + "\n".join(lines).strip("\n") + "\n```"
    pattern = re.compile(rf"(<!-- output: {command} -->\n)```text\n.*?```", re.DOTALL)
    text = README.read_text(encoding="utf-8")
    if UPDATE:
        Path(README).write_text(pattern.sub(lambda m: m[1] + block, text), encoding="utf-8")
        text = README.read_text(encoding="utf-8")
    assert block in text
