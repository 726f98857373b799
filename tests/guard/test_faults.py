"""Every planted fault is found by name and in time, its harm is real, and its twin is silent."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import pytest

from dsguard.runtime.rule import all_guard_rules
from tests.guard.crews import Crews, hired
from tests.guard.plants import PLANTS, Plant
from tests.guard.scripts import Answer

_BEYOND_THE_WINDOW = {
    "boundary-never-reached": "a window is too long only when it is longer than it should be",
    "micro-batch-differs": "one smaller batch is the last of an epoch as well",
    "parameters-not-moving": "one step may be lost in rounding",
    "scheduler-stepped-twice": "seen at the next step",
    "short-window": "a short window is judged beside a whole one",
    "steps-skipped": "a few skipped steps are the search for a loss scale",
}
"""Rules that need more than a window, and why."""

_OF_STUBS = {"backward-around-engine", "known-bad-release"}
"""Rules about releases that are not installed; see test_guard_rules.py."""


@pytest.fixture(scope="module")
def crews() -> Iterator[Crews]:
    with hired() as crews:
        yield crews


@pytest.mark.deepspeed
@pytest.mark.parametrize(
    ("plant", "stage"),
    [
        pytest.param(plant, stage, id=f"{plant.id}-zero{stage}")
        for plant in PLANTS
        for stage in plant.stages
    ],
)
def test_planted_fault(plant: Plant, stage: int, crews: Crews) -> None:
    name = f"{plant.slug}/{plant.path.name}"
    answers = crews[plant.ranks].run(
        plant.source, name, stage, seconds_for_ranks=plant.seconds_for_ranks
    )
    for rank, answer in enumerate(answers):
        assert answer.error == plant.marks.get("error", "")
        _judge(plant, rank, answer)
        expected = plant.figures(stage, rank)
        if answer.error:
            continue
        assert {figure: str(answer.outcome[figure]) for figure in expected} == expected


def _judge(plant: Plant, rank: int, answer: Answer) -> None:
    own = [found for found in answer.found if found.rule == plant.slug]
    others = {found.rule for found in answer.found} - {plant.slug}
    when = plant.found(rank)
    if plant.bad and when != "nothing":
        assert own, f"found only {answer.found}"
        assert own[0].when == when
        assert others == plant.others - {plant.slug}, answer.found
    else:
        assert {found.rule for found in answer.found} == plant.others, answer.found
        assert all(found.severity == "info" for found in answer.found), answer.found


_WITHOUT_ENGINE = {"optimizer-of-other-parameters", "sync-off-boundary"}
"""Rules about loops without DeepSpeed; see test_data_parallel.py."""


def slugs() -> list[str]:
    elsewhere = _OF_STUBS | _WITHOUT_ENGINE
    return [rule.meta.slug for rule in all_guard_rules() if rule.meta.slug not in elsewhere]


@pytest.mark.parametrize("slug", slugs())
def test_a_rule_has_two_bad_and_two_good_scripts(slug: str) -> None:
    mine = [plant for plant in PLANTS if plant.slug == slug]
    bad = [plant for plant in mine if plant.bad]
    good = [plant for plant in mine if not plant.bad]
    assert len(bad) >= 2
    assert len(good) >= 2
    assert any(_differing_lines(one, other) == 1 for one in bad for other in good)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.id)
def test_a_script_says_what_it_is_about(plant: Plant) -> None:
    assert plant.slug in slugs()
    if plant.bad:
        assert "found" in plant.marks
        assert any(plant.figures(stage, 0) for stage in plant.stages), "no harm is asserted"
    else:
        assert "found" not in plant.marks
        assert "also" not in plant.marks


def _differing_lines(bad: Plant, good: Plant) -> int:
    """Lines of code in which two scripts differ, docstring and declarations aside."""
    one, other = ([*map(str.rstrip, _code(plant))] for plant in (bad, good))
    changed = [line for line in difflib.ndiff(one, other) if line[0] in "+-"]
    removed = sum(line[0] == "-" for line in changed)
    return max(removed, len(changed) - removed)


def _code(plant: Plant) -> list[str]:
    lines = plant.source.splitlines()[1:]
    return [line for line in lines if not line.startswith("# ")]
