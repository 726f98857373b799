from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsguard.model.fact import FACT_NAMES, Candidate, Known, Origin, OriginKind, Unknown
from dsguard.render.facts_table import render_facts

Expect = Callable[[str, str], None]


def facts(check: Any, **options: Any) -> str:
    return render_facts(check, **{"color": False, "unicode": True, **options})


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("wide", {"named": True}),
        ("color", {"color": True, "columns": 150}),
        ("100", {"columns": 100}),
        ("80-ascii", {"columns": 80, "unicode": False}),
        ("50", {"columns": 50}),
    ],
)
def test_the_story(build: Any, expect: Expect, name: str, options: dict[str, Any]) -> None:
    expect(f"facts-{name}.txt", facts(build.story().checks[0], **options))


def test_colour_changes_nothing_but_colour(build: Any) -> None:
    check = build.story().checks[0]
    for columns in (None, 100, 50):
        coloured = re.sub(r"\x1b\[[0-9;]*m", "", facts(check, color=True, columns=columns))
        lines = [line.rstrip() for line in coloured.splitlines()]
        assert lines == facts(check, columns=columns).splitlines()


@pytest.mark.parametrize("columns", [None, 200, 140, 100, 80, 60, 40, 10])
def test_every_fact_is_shown_and_no_place_is_broken(build: Any, columns: int | None) -> None:
    config = build.config(name="my configs/ds config file.json")
    at = Origin(OriginKind.CONFIG, build.at(config, "32"))
    known = Known(32, at, (Candidate(16, at),))
    shown = facts(build.check(facts={"train_batch_size": known}), columns=columns)
    assert shown.count("my configs/ds config file.json:2:23") == 2
    assert all(re.search(rf"^{name}\b", shown, re.MULTILINE) for name in FACT_NAMES)
    if columns is not None and columns >= 60:
        assert max(map(len, shown.splitlines()[2:])) <= columns


def step(build: Any, **values: Any) -> str:
    given = {name: Known(value, build.default()) for name, value in values.items()}
    return facts(build.check(facts=given)).partition("\n\n")[0]


def test_the_headline_says_what_one_step_trains_on(build: Any) -> None:
    numbers = {
        "samples_per_step": 32,
        "gradient_accumulation_steps": 8,
        "data_parallel_size": 2,
        "world_size": 4,
        "train_batch_size": 32,
    }
    assert step(build, **numbers) == (
        "One optimizer step trains on 32 samples:"
        " 2 per loader batch × 8 accumulation steps × 2 data-parallel ranks"
    )
    assert step(build, **numbers | {"world_size": 2}).endswith(" × 2 ranks")


@pytest.mark.parametrize(
    ("samples", "batch", "warning"),
    [(4, 32, "32: every step trains on 28 fewer"), (64, 32, "32: every step trains on 32 more")],
)
def test_the_headline_warns_by_number(build: Any, samples: int, batch: int, warning: str) -> None:
    lines = step(build, samples_per_step=samples, train_batch_size=batch).splitlines()
    assert lines == [
        f"One optimizer step trains on {samples} samples",
        f"train_batch_size says {warning}",
    ]


def test_the_headline_says_why_it_is_unknown(build: Any) -> None:
    check = build.check(facts={"samples_per_step": Unknown("no launch command was given")})
    assert facts(check).startswith(
        "What one optimizer step trains on is unknown: no launch command was given\n\n"
    )


@pytest.mark.parametrize("value", ["auto", True, 1.5, 0, None])
def test_no_arithmetic_on_what_is_no_count(build: Any, value: Any) -> None:
    odd = {"gradient_accumulation_steps": value, "data_parallel_size": value}
    assert step(build, samples_per_step=4, **odd) == "One optimizer step trains on 4 samples"


@settings(max_examples=60)
@given(words=st.text(max_size=20), columns=st.sampled_from([None, 90, 40]), color=st.booleans())
def test_no_text_can_break_the_table(
    build: Any, words: str, columns: int | None, color: bool
) -> None:
    def check(words: str) -> Any:
        config = build.config(name=f"f{words}")
        origin = Origin(OriginKind.CONFIG, build.at(config, "32"))
        candidate = Candidate(words, Origin(OriginKind.LAUNCH, argument=f"a{words}"))
        return build.check(
            facts={
                "optimizer": Known(words, origin, (candidate,)),
                "scheduler": Unknown(f"r {words}"),
            },
            config=words,
        )

    shown = facts(check(words), columns=columns, color=color, named=True, unicode=False)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert plain.isascii()
    assert plain.replace("\n", "").isprintable()
    table = plain.partition("\n\n")[2]
    starts = {line.partition(" ")[0] for line in table.splitlines()}
    assert starts - {""} >= set(FACT_NAMES)
    assert all(not start.strip("-") for start in starts - set(FACT_NAMES) - {"fact"})
