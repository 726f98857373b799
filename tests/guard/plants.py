"""The planted faults: ``fixtures/guard/<rule>/bad_*.py`` and ``good_*.py``, and what they declare.

A script declares in comments below its docstring:

- ``ranks: 2`` and ``stages: 0 1``: how it is run; 1 rank and ZeRO-0 unless it says otherwise
- ``found: micro-batch 4``: when the finding of a bad script is there, or ``attach``, ``close``,
  ``nothing``; ``found on rank 1: …`` where that rank differs
- ``also: rule (why)`` and ``notes: rule``: another rule that speaks, and one that only notes
- ``error: KeyError: 0``: what the script stops with
- ``weights: 0.25x4``, ``steps: 1`` …: figures of ``tiny.outcome``; ``weights at 1 2: …`` at some
  stages, ``weights of rank 1: …`` on that rank
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.guard.scripts import TINY

FIGURES = ("weights", "steps", "samples", "schedule", "dtype")


@dataclass(frozen=True)
class Plant:
    """One script."""

    path: Path

    @property
    def slug(self) -> str:
        return self.path.parent.name

    @property
    def bad(self) -> bool:
        return self.path.name.startswith("bad_")

    @property
    def id(self) -> str:
        return f"{self.slug}/{self.path.stem}"

    @cached_property
    def marks(self) -> dict[str, str]:
        lines = re.findall(r"^# ([a-z][^:]*): (.*)$", self.source, re.MULTILINE)
        return {name: value.strip() for name, value in lines}

    @cached_property
    def source(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def ranks(self) -> int:
        return int(self.marks.get("ranks", "1"))

    @property
    def stages(self) -> list[int]:
        return [int(stage) for stage in self.marks.get("stages", "0").split()]

    def found(self, rank: int) -> str:
        return self.marks.get(f"found on rank {rank}", self.marks.get("found", "nothing"))

    @property
    def seconds_for_ranks(self) -> float:
        """How long a rank is waited for at attach: one that never comes, not for long."""
        return 1.0 if self.bad and self.slug == "rank-not-attached" else 60.0

    @property
    def others(self) -> set[str]:
        return {self.marks[name].split()[0] for name in ("also", "notes") if name in self.marks}

    def figures(self, stage: int, rank: int) -> dict[str, str]:
        """What the script says the training comes to."""
        expected: dict[str, str] = {}
        for name, value in self.marks.items():
            figure, *rest = re.split(r" (?=at |of rank )", name)
            if figure in FIGURES and all(_holds(clause, stage, rank) for clause in rest):
                expected[figure] = value
        return expected


def _holds(clause: str, stage: int, rank: int) -> bool:
    word, *numbers = clause.replace("of rank", "rank").split()
    return str(stage if word == "at" else rank) in numbers


PLANTS = [Plant(path) for path in sorted(TINY.glob("*/*.py"))]
