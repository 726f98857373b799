"""What all tests share: running the program in this process, and updating expected outputs."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest
from hypothesis import settings
from typer.testing import CliRunner

from dsguard.cli.app import app
from dsguard.cli.launch_words import split_off_launch
from dsguard.launch.environ import is_read

settings.register_profile("seeded", derandomize=True, deadline=None)
settings.load_profile("seeded")

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"

PROGRAM = app()

PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
"""The programs of the environment that the tests run in come first."""

UPDATE = os.environ.get("DSGUARD_UPDATE") == "1"
"""Whether expected outputs are rewritten instead of compared."""


class Outcome(NamedTuple):
    """What a run of the program gave."""

    code: int
    out: str
    err: str


class Dsguard(Protocol):
    """Runs ``dsguard`` with a command line; ``folder`` becomes the working directory."""

    def __call__(self, line: str, folder: Path | None = None, stdin: bytes = b"") -> Outcome: ...


SHELL = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", *filter(is_read, os.environ))
"""Variables of whoever runs the tests that would change what dsguard says."""


@pytest.fixture
def dsguard(monkeypatch: pytest.MonkeyPatch) -> Dsguard:
    for name in SHELL:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", os.devnull)

    def run(line: str, folder: Path | None = None, stdin: bytes = b"") -> Outcome:
        if folder is not None:
            monkeypatch.chdir(folder)
        arguments, launch = split_off_launch(shlex.split(line))
        result = CliRunner().invoke(
            PROGRAM, arguments, obj=launch, input=stdin, prog_name="dsguard"
        )
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run


def compare(expected: Path, actual: str) -> None:
    """Compare with a file, or write the file where outputs are being updated."""
    if UPDATE:
        expected.write_text(actual, encoding="utf-8")
    assert expected.is_file(), f"{expected} is missing: run pytest with DSGUARD_UPDATE=1"
    assert actual == expected.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def extensions(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where DeepSpeed compiles its ops: a folder of this session, without locks of others."""
    given = os.environ.get("TORCH_EXTENSIONS_DIR")
    return given or str(tmp_path_factory.mktemp("torch_extensions"))
