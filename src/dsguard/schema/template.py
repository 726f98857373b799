"""Templates: configs with placeholders.

DeepSpeed refuses them as they are, but nobody gives them to DeepSpeed as they are, so what stands
in place of the placeholders is unknown and not wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsguard.model.finding import Consequence
from dsguard.model.placeholder import is_marked, is_placeholder
from dsguard.model.tree import join_pointer, split_pointer
from dsguard.schema import wording
from dsguard.schema.problem import ROOT, Problem, ProblemKind


def judged_as_template(value: dict[str, Any], problems: list[Problem]) -> list[Problem]:
    """The problems of a config without those of placeholders, and one that tells of them.

    A word in capitals is only taken for a placeholder where DeepSpeed would not take it as text.
    """
    found = dict(_placeholders(value))
    if not found:
        return problems
    blocks = {split_pointer(pointer)[0] for pointer in found}
    kept, silenced, refused = list[Problem](), set[str](), False
    for problem in problems:
        filled_in_later = problem.part == "value" and problem.pointer in found
        if not filled_in_later and not _depends_on(problem, blocks):
            kept.append(problem)
            continue
        refused |= problem.consequence is Consequence.REFUSED
        if filled_in_later:
            silenced.add(problem.pointer)
    told = [p for p, text in found.items() if p in silenced or is_marked(text.strip())]
    return [_note(told, found, refused), *kept] if told else kept


def _placeholders(value: Any) -> Iterator[tuple[str, str]]:
    """Pointers and texts of all placeholders, in the order of the config."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        pointer, value = waiting.pop()
        if is_placeholder(value):
            yield pointer, value
        elif isinstance(value, dict):
            children = list(value.items())
            waiting.extend((join_pointer(pointer, k), v) for k, v in reversed(children))
        elif isinstance(value, list):
            items = list(enumerate(value))
            waiting.extend((join_pointer(pointer, i), v) for i, v in reversed(items))


def _depends_on(problem: Problem, blocks: set[str]) -> bool:
    """Whether a problem of values taken together touches a block that holds a placeholder."""
    if problem.kind is not ProblemKind.REFUSED_COMBINATION:
        return False
    places = (problem.pointer, problem.other)
    return any(place and split_pointer(place)[0] in blocks for place in places)


def _note(told: list[str], found: dict[str, str], refused: bool) -> Problem:
    at = ROOT
    for token in split_pointer(told[0]):
        at = at.child(token)
    return wording.placeholder(at, found[told[0]], len(told), refused=refused)
