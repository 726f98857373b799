"""The fixtures of the rules: ``fixtures/rules/<slug>/{bad,good}/<name>.json``.

Beside a config may stand ``<name>.args``, what is typed after ``dsguard check <config>``, and
``<name>.out``, the concise report. ``TARGET`` is the release unless the arguments say another.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import FIXTURES

TARGET = "0.19.8"
CONFIG_SUFFIXES = (".json", ".hjson")


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
    cases = [
        RuleCase(folder.parent.name, folder.name == "bad", config)
        for folder in sorted((FIXTURES / "rules").glob("*/*"))
        for config in sorted(folder.iterdir())
        if config.suffix in CONFIG_SUFFIXES and not config.name.startswith("other-")
    ]
    assert cases, "no rule fixtures found"
    return cases
