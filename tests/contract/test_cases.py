"""The table of cases is true: every fixture it names exists and is judged as it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from dsguard.rules import all_rules
from tests.conftest import FIXTURES, Dsguard
from tests.contract.rule_cases import CONFIG_SUFFIXES, SCRIPT_SUFFIXES, RuleCase

TABLE = Path(__file__).with_name("cases.md")
FAMILIES = {
    "Batch arithmetic and launch": 22,
    "One value in two places": 14,
    "Optimizer and scheduler blocks": 8,
    "Keys and values": 18,
    "ZeRO and offload": 13,
    "Precision": 7,
    "Accumulation and the training loop": 19,
    "Work of each rank": 11,
}
"""The sections of the table and how many cases each must have."""


class Row(NamedTuple):
    """One case: ``fixture`` is a path, or the reason why there is none."""

    section: str
    case: str
    rule: str
    fixture: str
    verdict: str


def rows() -> list[Row]:
    found: list[Row] = []
    section = ""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 4 and cells[0] not in ("case", "---"):
            found.append(Row(section, *cells))
    return found


SUFFIXES = (*CONFIG_SUFFIXES, *SCRIPT_SUFFIXES)
ROWS = rows()
SHOWN = [row for row in ROWS if row.rule != "-"]


def test_every_case_is_in_the_table_once() -> None:
    assert {
        section: sum(row.section == section for row in ROWS) for section in FAMILIES
    } == FAMILIES
    assert len({row.case for row in ROWS}) == len(ROWS)


def test_a_case_without_a_fixture_says_why() -> None:
    for row in ROWS:
        if row.rule == "-":
            assert row.verdict == "-"
            assert len(row.fixture.split()) > 3, row


@pytest.mark.parametrize("row", SHOWN, ids=lambda row: row.case)
def test_the_fixture_is_judged_as_the_table_says(row: Row, dsguard: Dsguard) -> None:
    slug, kind, name = row.fixture.split("/")
    assert row.rule in {rule.meta.slug for rule in all_rules()}
    assert slug == row.rule
    assert (kind == "good") == (row.verdict == "ok")
    folder = FIXTURES / "rules" / slug / kind
    (config,) = (path for path in folder.glob(f"{name}.*") if path.suffix in SUFFIXES)
    outcome = dsguard(RuleCase(slug, kind == "bad", config).line, folder)
    severities = set(re.findall(r"(error|warning|info)\[DSG\d+\]", outcome.out))
    if row.verdict == "ok":
        assert not severities & {"error", "warning"}, outcome.out
        return
    ours = set(re.findall(rf"(error|warning|info)\[DSG\d+\] {slug}:", outcome.out))
    assert row.verdict in ours, outcome.out
    worst = next(level for level in ("error", "warning", "info") if level in severities)
    assert row.verdict == worst, outcome.out
