"""The fixtures of the rules: ``fixtures/rules/<slug>/{bad,good}/<name>.json``.

Beside a config may stand ``<name>.args``, what is typed after ``dsguard check <config>``, and
``<name>.out``, the concise report. ``TARGET`` is the release unless the arguments say another.
A job file or launch script whose name starts with ``job-`` is checked in place of a config. So is
a training script (or notebook) of the script family, which holds its config or names it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from dsguard.cli.commands import check
from dsguard.model.report import Check
from dsguard.pairing import Input
from dsguard.rules import all_rules
from tests.conftest import FIXTURES, Dsguard

TARGET = "0.19.8"
CONFIG_SUFFIXES = (".json", ".hjson")
JOB_SUFFIXES = (".yaml", ".sh")
SCRIPT_SUFFIXES = (".py", ".ipynb")


@dataclass(frozen=True)
class RuleCase:
    slug: str
    bad: bool
    config: Path

    @property
    def id(self) -> str:
        return f"{self.slug}/{'bad' if self.bad else 'good'}/{self.config.stem}"

    @property
    def args(self) -> str:
        path = self.config.with_suffix(".args")
        return path.read_text(encoding="utf-8").strip() if path.is_file() else ""

    @property
    def expected(self) -> Path:
        return self.config.with_suffix(".out")

    @property
    def line(self) -> str:
        """The whole command line, run in the folder of the config."""
        target = "" if "--target" in self.args else f"--target {TARGET} "
        # A launch that names a missing config is checked without one.
        config = "" if self.config.stem.startswith("without-config") else self.config.name
        return f"check -o concise {config} {target}{self.args}"

    def option(self, name: str) -> str | None:
        """The value of one of dsguard's own options in the arguments."""
        words = shlex.split(self.args)
        words = words[: words.index("--")] if "--" in words else words
        return words[words.index(name) + 1] if name in words else None


def rule_cases() -> list[RuleCase]:
    """The cases that check a config."""
    return [
        case
        for case in _cases(CONFIG_SUFFIXES)
        if not case.config.name.startswith(("other-", "job-"))
    ]


def script_cases() -> list[RuleCase]:
    """The cases that check a training script."""
    slugs = {rule.meta.slug for rule in all_rules() if rule.meta.family == "script"}
    return [
        case
        for case in _cases(SCRIPT_SUFFIXES)
        if case.slug in slugs and not case.config.name.startswith("other_")
    ]


def job_cases() -> list[RuleCase]:
    """The cases that check a job file or a launch script."""
    cases = _cases((*JOB_SUFFIXES, ".json"))
    return [case for case in cases if case.config.name.startswith("job-")]


def inputs_of(
    line: str, folder: Path, dsguard: Dsguard, monkeypatch: pytest.MonkeyPatch
) -> list[Input]:
    """The pairs that a command line checks, without checking them."""
    taken: list[Input] = []

    def take(inputs: Sequence[Input]) -> list[Check]:
        taken.extend(inputs)
        return []

    with monkeypatch.context() as patch:
        patch.setattr(check, "_check_all", take)
        dsguard(line, folder)
    return taken


def _cases(suffixes: tuple[str, ...]) -> list[RuleCase]:
    cases = [
        RuleCase(folder.parent.name, folder.name == "bad", config)
        for folder in sorted((FIXTURES / "rules").glob("*/*"))
        for config in sorted(folder.iterdir())
        if config.suffix in suffixes
    ]
    assert cases, "no rule fixtures found"
    return cases
