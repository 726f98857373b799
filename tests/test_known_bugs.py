"""The table of known bugs: each row shows in a fixture of its own and is gone in another."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from dsguard.facts.known_bugs import (
    BUG_FACTS,
    KNOWN_BUGS,
    BugFact,
    KnownBug,
    Releases,
    more_than,
    named,
    older_than,
    release_number,
)
from tests.conftest import FIXTURES, Dsguard

FOLDER = FIXTURES / "rules" / "known-bug"
BY_NAME = {bug.name: bug for bug in KNOWN_BUGS}
READ = [bug for bug in KNOWN_BUGS if not bug.needs_a_running_engine]

SEEN: dict[str, tuple[str, dict[BugFact, Any], dict[BugFact, Any]]] = {
    "second-backward-fails": (
        "0.18.2",
        {"zero_stage": 1, "backwards_per_step": 2},
        {"backwards_per_step": 1},
    ),
    "module-loss-not-divided": (
        "0.19.5",
        {
            "zero_stage": 2,
            "gradient_accumulation_steps": 4,
            "forward_through": "module",
            "backward_through": "engine",
        },
        {"forward_through": "engine"},
    ),
    "raw-backward-not-averaged": (
        "0.17.6",
        {"zero_stage": 0, "backward_through": "loss"},
        {"backward_through": "engine"},
    ),
    "raw-backward-fails": (
        "0.15.4",
        {"zero_stage": 2, "backward_through": "loss"},
        {"zero_stage": 3},
    ),
}
"""Bugs that only a running engine meets: a release, what it sees, and what makes it fine."""


@pytest.mark.parametrize("bug", READ, ids=lambda bug: bug.name)
def test_a_row_has_its_fixtures(bug: KnownBug, dsguard: Dsguard) -> None:
    for verdict, found in (("bad", True), ("good", False)):
        config = FOLDER / verdict / f"{bug.name}.json"
        line = config.with_suffix(".args").read_text(encoding="utf-8").strip()
        outcome = dsguard(f"check -o concise {config.name} {line}", config.parent)
        assert (bug.source in outcome.out) is found
        assert (bug.says in outcome.out) is found


def test_each_row_about_a_running_engine_is_shown() -> None:
    assert set(SEEN) == {bug.name for bug in KNOWN_BUGS if bug.needs_a_running_engine}


@pytest.mark.parametrize("name", SEEN)
def test_a_running_engine_meets_it(name: str) -> None:
    release, facts, otherwise = SEEN[name]
    bug = BY_NAME[name]
    assert bug.shows(release, facts)
    assert not bug.shows(release, facts | otherwise)
    assert not bug.shows("0.19.8", facts)


@pytest.mark.parametrize("bug", KNOWN_BUGS, ids=lambda bug: bug.name)
def test_a_row_is_silent_where_a_fact_is_not_known(bug: KnownBug) -> None:
    inside = bug.releases.first or "0.9.0"
    for missing in bug.when:
        anything: dict[BugFact, Any] = {name: None for name in BUG_FACTS if name != missing}
        assert not bug.shows(inside, anything)


@pytest.mark.parametrize("bug", KNOWN_BUGS, ids=lambda bug: bug.name)
def test_a_condition_takes_any_value(bug: KnownBug) -> None:
    for holds in bug.when.values():
        for value in (None, True, "auto", "", -1, 2.5, [], {}):
            assert holds(value) in (True, False)


OPEN = {"no-sync-with-partitioned-gradients"}
"""Rows about other packages, which no release of DeepSpeed repairs."""


@pytest.mark.parametrize("bug", KNOWN_BUGS, ids=lambda bug: bug.name)
def test_a_row_is_over_in_the_newest_release(bug: KnownBug) -> None:
    assert ("0.19.8" in bug.releases) == (bug.name in OPEN)


@pytest.mark.parametrize("bug", KNOWN_BUGS, ids=lambda bug: bug.name)
def test_conditions_ask_about_named_facts(bug: KnownBug) -> None:
    assert bug.when
    assert set(bug.when) <= set(BUG_FACTS)


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(KNOWN_BUGS)


@pytest.mark.parametrize(
    ("release", "inside"),
    [
        ("0.17.5", False),
        ("0.17.6", True),
        ("0.17.6+cu124", True),
        ("0.18", True),
        ("0.18.2", True),
        ("0.18.3", False),
        ("0.18.3.dev0", False),
        ("0.18.10", False),
    ],
)
def test_a_range_of_releases(release: str, inside: bool) -> None:
    assert (release in Releases("0.17.6", "0.18.3")) is inside


def test_a_release_is_a_number() -> None:
    assert release_number("0.19.0") == release_number("v0.19") == (0, 19)
    with pytest.raises(ValueError, match="is not a release"):
        release_number("main")


def test_conditions() -> None:
    assert more_than(1)(2)
    assert not more_than(0)(True)
    assert named("lion")("Lion")
    assert older_than("4.48")("4.47.1")
    assert not older_than("4.48")("4.48.0.dev0")
    assert not older_than("4.48")("main")


def test_the_table_needs_no_package() -> None:
    """A guard beside a running engine has neither pydantic nor packaging to import."""
    code = "import sys, dsguard.facts.known_bugs as k; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not {"pydantic", "packaging", "typer", "rich", "torch"} & set(loaded)
