"""``dsguard explain`` and ``dsguard rules``."""

from __future__ import annotations

import re

import pytest

from dsguard.catalogue import rules
from dsguard.rules import find_rule, page
from tests.conftest import Dsguard


@pytest.mark.parametrize("name", ["accumulation-ignored", "DSG203", "dsg203"])
def test_the_page_of_a_rule(dsguard: Dsguard, name: str) -> None:
    rule = find_rule("DSG203")
    assert rule is not None
    outcome = dsguard(f"explain {name}")
    assert (outcome.code, outcome.out) == (0, page(rule))


@pytest.mark.parametrize(
    ("text", "slugs"),
    [
        (
            "AssertionError: Check batch related parameters. train_batch_size is not equal to"
            " micro_batch_per_gpu * gradient_acc_step * world_size 32 != 4 * 1 * 4",
            ["batch-size-mismatch", "indivisible-batch-size"],
        ),
        ("is not equal to micro_batch_per_gpu", ["batch-size-mismatch"]),
        ("Loss falls  like a rocket", ["accumulation-ignored", "loader-batch-differs"]),
        (
            "[rank0]: ValueError: warmup_num_steps must be a positive integer, got 0",
            ["refused-schedule-length"],
        ),
        ("KeyError: 'CROSS_SIZE'", ["checkpoint-writer-without-launcher"]),
    ],
)
def test_a_message_or_symptom_finds_its_rules(
    dsguard: Dsguard, text: str, slugs: list[str]
) -> None:
    outcome = dsguard(f'explain "{text}"')
    assert outcome.code == 0
    found = re.findall(r"DSG\d{3}  (\S+)", outcome.out)
    assert set(slugs) <= set(found)
    assert len(found) < 8


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("accumulation-ignord", "did you mean accumulation-ignored?"),
        ("DSG999", "no rule or symptom is called DSG999"),
        ("xyzzy", "`dsguard rules` lists them"),
        ("''", "no rule or symptom is called"),
        ("error", "no rule or symptom is called error"),
        ("'no such thing has ever been seen'", "`dsguard rules` lists them"),
    ],
)
def test_a_name_that_nothing_has(dsguard: Dsguard, name: str, words: str) -> None:
    outcome = dsguard(f"explain {name}")
    assert (outcome.code, outcome.out) == (2, "")
    assert words in " ".join(outcome.err.replace("│", " ").split())


def test_rules_lists_all(dsguard: Dsguard) -> None:
    out = dsguard("rules").out
    assert re.findall(r"^  (DSG\d{3}) ", out, re.MULTILINE) == [r.meta.code for r in rules()]
