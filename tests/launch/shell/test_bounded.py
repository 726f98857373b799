"""Scripts that call themselves, double what they hold or never end: the work on them is bounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dsguard.launch.shell import assign, expand, state, walk
from dsguard.launch.shell.expand import Field, placed_words
from dsguard.launch.shell.find import find_launches
from dsguard.launch.shell.makefile import recipes
from dsguard.launch.shell.parse import Parser, parse
from dsguard.launch.shell.state import State
from dsguard.launch.shell.syntax import Simple
from dsguard.launch.shell.text import text_of
from dsguard.launch.words import Word
from dsguard.model.source import Source
from tests.calls import calls, lines
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


RECURSION = "f(){ f;f;f; }; f\n"


@pytest.mark.parametrize(
    ("name", "start", "form"),
    [
        ("Makefile", "all:\n", f"\t{RECURSION}"),
        ("README.md", "", f"```bash\n{RECURSION}```\n"),
    ],
)
def test_a_file_of_several_texts_is_worth_as_much_as_one(
    name: str, start: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "_BUDGET", 1_000)
    one, many = (
        calls(partial(find_launches, Source(name, start + form * times))) for times in (1, 20)
    )
    assert many < 2 * one
    assert not find_launches(Source(name, start + form * 20)).whole


def test_what_is_not_walked_starts_nothing_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "_BUDGET", 1_000)
    found = find_launches(Source("Makefile", f"all:\n\t{LAUNCH}\n\t{RECURSION}\t{LAUNCH}\n"))
    assert len(found.launches) == 1
    assert not found.whole


@pytest.mark.parametrize(
    ("value", "appended"),
    [("a" * 300_000, 0), ("a $(X) " * 5_000, 0), ("a", 20_000), ("$$" * 50_000, 0)],
    ids=["characters", "itself", "pieces", "dollars"],
)
def test_a_makefile_inserts_so_much_and_no_more(value: str, appended: int) -> None:
    text = f"X = {value}\n" + "X += b\n" * appended + "all:\n\tdeepspeed" + " $(X)" * 1_990
    recipe = next(recipes(Source("Makefile", text)))
    assert len(recipe.text) < len(text) + (1 << 20)
    assert len(recipe.chunks) < (1 << 20) // 20 + 4 * 1_990
    assert not recipe.chunks[-1].known


def test_a_makefile_inserts_what_a_launch_needs() -> None:
    text = f"ARGS = {WORDS}\nall:\n" + "\tdeepspeed train.py $(ARGS)\n" * 50
    assert all(
        chunk.known for recipe in recipes(Source("Makefile", text)) for chunk in recipe.chunks
    )


@pytest.mark.parametrize("form", ['echo $((echo "(((((((((" ) )\n', "((a ; b) ; c)\n"])
def test_parentheses_are_matched_once(form: str) -> None:
    once, twice = (lines(Parser(form * times).whole) for times in (50, 100))
    assert twice < 2.3 * once


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("a[3]=b c", True),
        ("a[${i}]+=b c", True),
        (f"a[{'i' * 400}]=b c", True),
        (f"a[{'i' * 401}]=b c", False),
    ],
)
def test_a_subscript_has_an_end(text: str, taken: bool) -> None:
    """Or every ``[`` of a line would be looked for to its end."""
    node = parse(text).block[0].commands[0]
    assert isinstance(node, Simple)
    assert bool(node.assignments) is taken


@pytest.mark.parametrize(
    "text",
    ["a[;" * 40_000, "echo " + "${a[}" * 10_000, "python x.py --" + "deepspeed" * 12_000 + "!"],
)
def test_long_lines_are_read(text: str) -> None:
    """Each of them took as long as its length times itself: up to a minute."""
    assert not find_launches(Source("run.sh", text)).launches


@pytest.mark.parametrize(
    ("word", "launches"),
    [("--deepspeed", 1), ("-my-DS_config-x", 1), ("--x=deepspeed_", 0), ("--deepspeed!", 0)],
)
def test_a_flag_that_names_deepspeed(word: str, launches: int) -> None:
    found = find_launches(Source("run.sh", f"python train.py {word}\n"))
    assert len(found.launches) == launches


MANY = "A=" + "'x'\"y\"" * 1_900 + "\n"
"""A variable of 3,800 chunks."""


@pytest.mark.parametrize(
    ("start", "form"),
    [
        (MANY + "".join(f'A{number}="$A"\n' for number in range(4)), "a && b\n"),
        ("", "A+=(x)\n"),
        ("", "A+=x\n"),
        ("set -- " + "a " * 10_000 + "\n", "shift\n"),
        (MANY, "B=${#A}\n"),
        (MANY.replace("x", "1").replace("y", "1"), "B=$((A))\n"),
    ],
    ids=["merged", "array", "appended", "shifted", "measured", "calculated"],
)
def test_what_is_looked_at_again_and_again_is_paid_for(
    start: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0

    def count(real: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def counted(values: Any) -> Any:
            nonlocal looked
            looked += len(values) if values is not None else 0
            return real(values)

        return counted

    for module in (state, expand, assign):
        for name in ("text_of", "is_known"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, count(getattr(module, name)))
    monkeypatch.setattr(walk, "_BUDGET", 5_000)
    short, long = (find_launches(Source("run.sh", start + form * times)) for times in (3, 1_500))
    assert short.whole
    assert not long.whole
    assert looked < 2 * 100 * 5_000


def test_20000_commands_are_read_to_their_end() -> None:
    text = "A=(1 2 3)\nset -- a b c\n" + "B+=x\nshift\n" * 500 + "echo ${#A} ${1:-1}\n" * 9_000
    found = find_launches(Source("run.sh", text + "true\n" * 10_000 + LAUNCH))
    assert found.whole
    assert len(found.launches) == 1
