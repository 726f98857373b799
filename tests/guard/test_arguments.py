"""What ``guard`` says to arguments that make no sense."""

from __future__ import annotations

from typing import Any

import pytest

from dsguard import guard
from dsguard.runtime.attach import _chosen
from dsguard.runtime.rule import all_guard_rules


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"on_violation": "stop"}, "on_violation is warn, raise or record"),
        ({"ranks": "all"}, "ranks is attach or off"),
        ({"every": 0}, "every is a number of optimizer steps"),
        ({"every": True}, "every is a number of optimizer steps"),
        ({"checks": "short-batch"}, "checks is 'default' or a list of rules"),
        ({"checks": ["short-bach"]}, "the guard has no rule 'short-bach'; did you mean"),
        ({"checks": ["-nothing-like-it"]}, "the guard has no rule 'nothing-like-it'"),
    ],
)
def test_an_argument_that_makes_no_sense(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        guard(object(), **arguments)


def test_something_that_is_no_engine() -> None:
    with pytest.raises(TypeError, match="cannot guard a dict"):
        guard({})


def names(checks: Any) -> list[str]:
    return [rule.meta.slug for rule in _chosen(checks)]


def test_rules_are_chosen_and_left_out() -> None:
    every = [rule.meta.slug for rule in all_guard_rules()]
    assert names("default") == every
    assert names(["DSG912", "ranks-differ"]) == ["ranks-differ", "accumulated-twice"]
    assert names(["-short-batch"]) == [slug for slug in every if slug != "short-batch"]
    assert names(["ranks-differ", "short-batch", "-DSG917"]) == ["ranks-differ"]
