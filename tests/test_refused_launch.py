"""A launch that stops is all there is to say: rules that count on its processes keep quiet."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Dsguard
from tests.contract.rule_cases import RuleCase, rule_cases

LAUNCHER_RULES = (
    "launcher-usage-error",
    "broken-hostfile",
    "refused-host-selection",
    "broken-accelerate-config",
    "hostfile-as-script",
)
BAD = [case for case in rule_cases() if case.bad and case.slug in LAUNCHER_RULES]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.id)
def test_nothing_is_added_to_a_launch_that_stops(case: RuleCase, dsguard: Dsguard) -> None:
    line = case.line.replace("-o concise", "-o json", 1)
    report = json.loads(dsguard(line, case.config.parent).out)
    assert {finding["rule"] for finding in report["findings"]} == {case.slug}
    (check,) = report["checks"]
    assert check["facts"]["world_size"]["state"] == "unknown"


@pytest.mark.parametrize(
    ("launch", "said"),
    [
        ("deepspeed train.py", {"world-size-unknown", "config-not-in-launch"}),
        ("deepspeed --num_gpus x train.py", {"launcher-usage-error"}),
    ],
)
def test_what_is_left_out(launch: str, said: set[str], dsguard: Dsguard) -> None:
    report = json.loads(
        dsguard(f"check -o json - -- {launch}", stdin=b'{"train_batch_size": 8}').out
    )
    assert {finding["rule"] for finding in report["findings"]} == said
