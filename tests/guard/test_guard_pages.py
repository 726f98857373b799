"""The examples of the guard's pages are run, and give exactly what the pages show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsguard.catalogue import page
from dsguard.runtime.rule import all_guard_rules
from tests.conftest import UPDATE
from tests.contract.test_rule_pages import Fence, fences
from tests.guard.crews import Crews, hired

BEFORE = """
import copy
import tempfile
from itertools import chain, islice

import deepspeed
import tiny
import torch

from dsguard import guard

model = tiny.Model()
optimizer = torch.optim.AdamW(model.parameters())


def loader_of(size):
    return tiny.batches(8, size)


loader = loader_of(1)
folder = tempfile.mkdtemp()
"""
"""What every example may use without saying so."""


@pytest.fixture(scope="module")
def crews() -> Iterator[Crews]:
    with hired() as crews:
        yield crews


@pytest.mark.deepspeed
@pytest.mark.parametrize("rule", all_guard_rules(), ids=lambda rule: rule.meta.slug)
def test_examples_of_the_page_are_true(rule, crews: Crews) -> None:
    """``python bad`` says exactly the ``text`` after it, ``python good`` nothing of the rule."""
    path = Path(__import__(rule.module, fromlist=["_"]).__file__).with_suffix(".md")
    text = page(rule)
    bad = good = 0
    said = ""
    replaced: list[tuple[Fence, str]] = []
    for fence in fences(text):
        if fence.info == "text":
            bad += 1
            assert f"({rule.meta.slug})" in said, said
            if UPDATE:
                replaced.append((fence, said))
            else:
                assert fence.body == said
        else:
            said = _said(fence, crews)
            if fence.info.startswith("python good"):
                good += 1
                assert f"({rule.meta.slug})" not in said, said
    assert bad, "the page shows no example with its output"
    assert good, "the page shows no good script"
    for fence, shown in reversed(replaced):
        text = text[: fence.start] + shown + text[fence.end :]
        path.write_text(text, encoding="utf-8")


def _said(fence: Fence, crews: Crews) -> str:
    options = dict(word.split("=") for word in fence.info.split()[2:])
    crew = crews[int(options.get("ranks", "1"))]
    answers = crew.run(
        fence.body,
        "train.py",
        before=BEFORE,
        release=options.get("release", ""),
        seconds_for_ranks=1.0 if "if rank == 0:" in fence.body else 60.0,
    )
    for answer in answers:
        assert not answer.error or "stops with" in answer.said, answer.error
    # The crew does not wait as long for a rank as a user's run does, and has a Python of its own.
    said = answers[0].said.replace("within 1 seconds", "within 10 seconds") + "\n"
    return re.sub(r"Python 3\.\d+\.\d+", "Python 3.11.7", said)
