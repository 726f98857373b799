"""Help texts, wrong usage, completion and the version: what the program says of itself."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Protocol

import pytest
import typer

from dsguard import __version__
from dsguard.cli.app import app, main
from tests.conftest import Dsguard, compare

EXPECTED = Path(__file__).parent / "expected"
PROGRAM = app()
COMMANDS = sorted(command.name or "" for command in PROGRAM.registered_commands)


class Program(Protocol):
    """Runs the program on a stream of some encoding; gives what it wrote there."""

    def __call__(self, *words: str, encoding: str = "utf-8", **environ: str) -> str: ...


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    def run(*words: str, encoding: str = "utf-8", **environ: str) -> str:
        written = io.BytesIO()
        with monkeypatch.context() as patch:
            for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
                patch.delenv(name, raising=False)
            for name, value in environ.items():
                patch.setenv(name, value)
            # As Python opens them: what standard output cannot encode is an error.
            for name, errors in (("stdout", "strict"), ("stderr", "backslashreplace")):
                stream = io.TextIOWrapper(written, encoding, errors, write_through=True)
                patch.setattr(sys, name, stream)
            patch.setattr(sys, "argv", ["dsguard", *words])
            with pytest.raises(SystemExit):
                main()
            text = written.getvalue().decode("utf-8")
            # A stream that is not closed here would close the buffer of the other one.
            sys.stdout.detach()  # type: ignore[union-attr]
            sys.stderr.detach()  # type: ignore[union-attr]
        return text

    return run


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help(command: str, dsguard: Dsguard) -> None:
    outcome = dsguard(f"{command} --help")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.isascii(), "not every terminal is UTF-8"
    compare(EXPECTED / f"help{'-' if command else ''}{command}.txt", outcome.out)
    assert dsguard(f"{command} -h").out == outcome.out


def test_every_option_is_described() -> None:
    group = typer.main.get_command(PROGRAM)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        assert command.help, name
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{name}: {parameter.name}"


@pytest.mark.parametrize("columns", [52, 60, 200])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_into_narrow_terminals(command: str, columns: int, program: Program) -> None:
    shown = program(command, "--help", COLUMNS=str(columns))
    # An option with its choices is never broken; it stands alone on its line.
    too_long = [line for line in shown.splitlines() if len(line) > columns]
    assert [line for line in too_long if not re.fullmatch(r"  --\S+ <\S+>", line)] == []


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(dsguard: Dsguard, option: str) -> None:
    assert dsguard(option) == (0, f"dsguard {__version__}\n", "")


WRONG = """\
check
check ds.json --
check ds.json --world-size 0
check ds.json --world-size many
check ds.json --world-size
check ds.json --gpus-per-node -1
check ds.json --target newest
check ds.json --target 0.3.1
check ds.json --select batch-size-mismach
check ds.json --select ,
check ds.json --ignore DSG9999
check ds.json --hostfile nowhere
check ds.json --front-end trainer
check ds.json --fail-on errors
check ds.json --color sometimes
check ds.json --output-format srif
check ds.json --output-format xml
check ds.json --output-format sarif=
check ds.json -o text -o json
check ds.json -o json=a -o sarif=a
check ds.json --output-file no/such/folder/report.json
check ds.json --worldsize 4
facts
facts ds.json other.json
facts ds.json --explain gradient_acumulation_steps
facts ds.json --output-format sarif
run
run ds.json
run ds.json --
diff
diff one.json
upgrade-check ds.json --from 0.3
upgrade-check ds.json --from 0.16.4 --to 99.9
schema --target latest
explain
explain batch-size-mismach
explain xyzzy
rules all
chek ds.json
--verison
"""


def test_wrong_usage(dsguard: Dsguard, tmp_path: Path) -> None:
    """Exit code 2, nothing on standard output, and a message that says the way out."""
    (tmp_path / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 2}')
    told = ""
    for line in WRONG.splitlines():
        code, out, err = dsguard(line, tmp_path)
        assert (code, out) == (2, ""), line
        message = " ".join(err.partition("Error: ")[2].split())
        assert message, line
        told += f"$ dsguard {line}\nError: {message}\n\n"
    compare(EXPECTED / "wrong-usage.txt", told)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("dsguard ch", ["check"]),
        ("dsguard check --output-f", ["--output-format", "--output-file"]),
        ("dsguard check -o s", ["sarif"]),
        ("dsguard check --front-end t", ["transformers"]),
        ("dsguard explain loader-b", ["loader-batch-differs"]),
        ("dsguard check --select loader-b", ["loader-batch-differs"]),
        ("dsguard facts --explain warm", ["warmup_steps"]),
    ],
)
def test_completion(words: str, offered: list[str], program: Program) -> None:
    last = str(len(words.split(" ")) - 1)
    shown = program(_DSGUARD_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=last)
    assert shown.split() == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_program_writes_the_completion_of_a_shell(shell: str, program: Program) -> None:
    shown = program(_DSGUARD_COMPLETE=f"source_{shell}")
    assert f"complete_{shell}" in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "模型.json"],
        ["check", "模型.json", "-o", "concise"],
        ["check", "模型.json", "-o", "json"],
        ["check", "模型.json", "-o", "sarif"],
        ["check", "模型.json", "-o", "github"],
        ["check", "nowhere-模.json"],
        ["facts", "模型.json", "--world-size", "2"],
        ["rules"],
        ["explain", "accumulation-ignored"],
        ["check", "--help"],
        ["check", "模型.json", "-o", "模"],
    ],
)
def test_a_terminal_that_is_not_utf_8(
    arguments: list[str], program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "模型.json").write_text('{"train_batch_sise": "模 → ≠"}', encoding="utf-8")
    shown = program(*arguments, encoding="cp1252")
    if {"json", "sarif", "github"} & set(arguments):
        assert "模型" in shown or "%E6%A8%A1" in shown
    else:
        assert shown.isascii()
