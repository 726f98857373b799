"""Scripts that call themselves, double what they hold or never end: the work on them is bounded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dsguard.launch.shell import walk
from dsguard.launch.shell.expand import Field, placed_words
from dsguard.launch.shell.find import find_launches
from dsguard.launch.shell.state import State
from dsguard.launch.shell.text import text_of
from dsguard.launch.words import Word
from dsguard.model.source import Source
from tests.conftest import Dsguard

WORDS = " ".join(f"--option{number} {number}" for number in range(400))
LAUNCH = "torchrun --nproc_per_node 2 train.py --deepspeed ds.json"


@pytest.mark.parametrize(
    "text",
    [
        f"f() {{\n {LAUNCH} {WORDS}\n f; f; f\n}}\nf\n",
        f"A=({WORDS})\nf() {{\n {LAUNCH} ${{A[@]}}\n f; f; f\n}}\nf\n",
        "".join(f"export V{number}=1\n" for number in range(800))
        + "".join(f"torchrun train{number}.py --deepspeed ds.json\n" for number in range(2000)),
    ],
    ids=["words", "array", "variables"],
)
def test_words_are_paid_for(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget of a script counts what a command costs, not only how many there are."""
    placed = 0

    def count(fields: Sequence[Field]) -> tuple[Word, ...]:
        nonlocal placed
        placed += len(fields)
        return placed_words(fields)

    monkeypatch.setattr(walk, "placed_words", count)
    monkeypatch.setattr(walk, "_BUDGET", 5_000)
    found = find_launches(Source("run.sh", text))
    assert found.launches
    assert not found.whole
    assert placed < 2 * 10 * 5_000


def test_commands_of_few_characters_are_paid_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "_BUDGET", 5_000)
    found = find_launches(Source("run.sh", "true\n" * 2_000 + LAUNCH))
    assert found.whole
    assert len(found.launches) == 1


DOUBLED = "A=xxxxxxxxxxxxxxxx\n" + "A=$A$A\n" * 12
"""A variable of 65,536 characters."""
PIECES = "A=x\n" + "A=$A$A\n" * 11
"""A variable of 2,048 characters, each of which has a place of its own."""


@pytest.mark.parametrize(
    "text",
    [
        DOUBLED + "".join(f"B{number}=$A\n" for number in range(900)),
        DOUBLED + "".join(f"declare B{number}=$A\n" for number in range(900)),
        DOUBLED + "export A\n" + "".join(f"{LAUNCH} --seed {seed}\n" for seed in range(900)),
        PIECES + "".join(f"{LAUNCH} {seed} $A$A$A$A$A$A$A$A\n" for seed in range(900)),
        PIECES + "for x in $A$A$A$A$A; do :; done\n" * 900 + LAUNCH,
        PIECES + "case $A$A$A$A$A in a) :;; esac\n" * 900 + LAUNCH,
        PIECES + "[[ $A$A$A$A$A = x ]] && :\n" * 900 + LAUNCH,
    ],
    ids=["assigned", "declared", "exported", "pieces", "looped", "matched", "compared"],
)
def test_characters_are_paid_for(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    handled = 0
    assign = State.assign

    def count(state: State, name: str, content: Any, *args: Any, **options: Any) -> None:
        nonlocal handled
        handled += len(text_of(content))
        assign(state, name, content, *args, **options)

    monkeypatch.setattr(State, "assign", count)
    found = find_launches(Source("run.sh", text))
    assert not found.whole
    for launch in found.launches:
        words = (*launch.command.words, *launch.command.exported)
        handled += sum(len(word.text) for word in words)
    assert handled < 2 * 100 * 50_000
    if text.startswith(PIECES):
        assert handled < 2 * 5 * 50_000


@pytest.mark.parametrize(
    "text",
    [f"{LAUNCH}\nf() {{\n f; f; f\n}}\nf\n", "# a remark\n" * 200_000 + LAUNCH],
    ids=["work", "length"],
)
def test_what_is_not_read_to_its_end_is_said(text: str, dsguard: Dsguard, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(text)
    (tmp_path / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 1}\n')
    outcome = dsguard("check run.sh", tmp_path)
    assert outcome.code == 3
    assert "run.sh: makes more work than a launch script does" in outcome.out
    assert "holds no launch" not in outcome.out
