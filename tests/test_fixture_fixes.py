"""Every fix that a finding offers works: applied, the finding is gone and nothing new is wrong."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Dsguard
from tests.contract.rule_cases import RuleCase, rule_cases

BAD = [case for case in rule_cases() if case.bad]


def findings(case: RuleCase, dsguard: Dsguard, folder: Path) -> list[dict[str, Any]]:
    line = case.line.replace("-o concise", "-o json", 1)
    found: list[dict[str, Any]] = json.loads(dsguard(line, folder).out)["findings"]
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a copy of the case's folder goes."""
    return tmp_path / "fixtures"


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.id)
def test_offered_fixes_work(case: RuleCase, dsguard: Dsguard, folder: Path) -> None:
    shutil.copytree(case.config.parent, folder)
    config = folder / case.config.name
    before = findings(case, dsguard, folder)
    rules = Counter(finding["rule"] for finding in before)
    text = config.read_text(encoding="utf-8")
    for finding in before:
        if finding["fix"] is None or not finding["fix"]["edits"]:
            continue
        assert finding["file"] == config.name
        fixed = text
        for edit in sorted(finding["fix"]["edits"], key=lambda e: e["start"], reverse=True):
            fixed = fixed[: edit["start"]] + edit["text"] + fixed[edit["end"] :]
        config.write_text(fixed, encoding="utf-8")
        after = Counter(found["rule"] for found in findings(case, dsguard, folder))
        assert after[finding["rule"]] == rules[finding["rule"]] - 1, finding["fix"]["title"]
        assert after <= rules, finding["fix"]["title"]


@pytest.mark.parametrize(
    "case",
    [c for c in BAD if c.slug in ("indivisible-batch-size", "zero-accumulation")],
    ids=lambda case: case.id,
)
def test_totals_named_in_the_help_fit(case: RuleCase, dsguard: Dsguard, folder: Path) -> None:
    shutil.copytree(case.config.parent, folder)
    config = folder / case.config.name
    command = case.line.replace("-o concise", "", 1)
    outcome = dsguard(command, folder)
    (named,) = re.findall(r"help: use a train_batch_size of (?:at least )?([\d or]+)", outcome.out)
    values = json.loads(config.read_text(encoding="utf-8"))
    for total in named.split(" or "):
        config.write_text(json.dumps({**values, "train_batch_size": int(total)}), encoding="utf-8")
        assert findings(case, dsguard, folder) == []


@pytest.mark.parametrize("launch", ["torchrun --nproc_per_node 2 train.py --deepspeed ds.json"])
@pytest.mark.parametrize(
    "flags",
    ["--per_device_train_batch_size 4", "--gradient_accumulation_steps 8 --max_grad_norm 1.0"],
)
def test_values_that_a_trainer_compares_are_left_to_it(
    launch: str, flags: str, dsguard: Dsguard, tmp_path: Path
) -> None:
    """A value in conflict is not known, so the rules that calculate with it are skipped."""
    config = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1}
    (tmp_path / "ds.json").write_text(json.dumps(config), encoding="utf-8")
    report = json.loads(dsguard(f"check ds.json -o json -- {launch} {flags}", tmp_path).out)
    skipped = {rule["rule"]: rule["reason"] for rule in report["checks"][0]["skipped_rules"]}
    assert "its sources disagree" in skipped.values()
    families = {finding["code"][:4] for finding in report["findings"]}
    assert not families & {"DSG0", "DSG2"}
