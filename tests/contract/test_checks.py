"""The table of DeepSpeed's checks is true: every rule that it names exists."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from dsguard.rules import all_rules

TABLE = Path(__file__).with_name("checks.md")
CHECKS = 278
"""How many checks the table holds; a new one of DeepSpeed's becomes a line and another number."""


class Line(NamedTuple):
    """One check: the slugs of the rules that answer it, or the reason why none does."""

    topic: str
    check: str
    rules: tuple[str, ...]
    reason: str


def lines() -> list[Line]:
    found: list[Line] = []
    topic = ""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            topic = line[3:]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 3 or cells[0] in ("check", "---"):
            continue
        check, rules, reason = cells
        slugs = tuple(rules.split(", ")) if rules != "-" else ()
        found.append(Line(topic, check, slugs, reason))
    return found


LINES = lines()


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.topic}: {line.check}")
def test_a_check_is_answered_or_says_why_not(line: Line) -> None:
    assert set(line.rules) <= {rule.meta.slug for rule in all_rules()}
    assert bool(line.rules) != bool(line.reason)
    assert line.rules or len(line.reason.split()) > 2


def test_every_check_has_one_line() -> None:
    assert len(LINES) == len({(line.topic, line.check) for line in LINES}) == CHECKS
