"""Templates: configs with placeholders.

DeepSpeed refuses them as they are, but nobody gives them to DeepSpeed as they are, so what stands
in place of the placeholders is unknown and not wrong.
"""

from __future__ import annotations

from typing import Any

from dsguard.model.finding import Consequence
from dsguard.model.placeholder import is_marked, is_placeholder
from dsguard.model.tree import Trail, inside_value, split_pointer, walk
from dsguard.schema import wording
from dsguard.schema.problem import ROOT, Problem, ProblemKind


def judged_as_template(value: dict[str, Any], problems: list[Problem]) -> list[Problem]:
    """The problems of a config without those of placeholders, and one that tells of them.

    A word in capitals is only taken for a placeholder where DeepSpeed would not take it as text.
    """
    whole: Any = value
    found = [(trail, text) for trail, text in walk(whole, inside_value) if is_placeholder(text)]
    if not found:
        return problems
    judged = {problem.at.tokens for problem in problems if problem.part == "value"}
    places = judged.intersection(trail.tokens for trail, _ in found)
    blocks = {trail.tokens[0] for trail, _ in found}
    kept, silenced, refused = list[Problem](), set[tuple[str, ...]](), False
    for problem in problems:
        place = problem.at.tokens
        filled_in_later = problem.part == "value" and place in places
        if not filled_in_later and not _depends_on(problem, blocks):
            kept.append(problem)
            continue
        refused |= problem.consequence is Consequence.REFUSED
        if filled_in_later:
            silenced.add(place)
    told = [
        (trail, text)
        for trail, text in found
        if is_marked(text.strip()) or trail.tokens in silenced
    ]
    return [_note(*told[0], len(told), refused), *kept] if told else kept


def _depends_on(problem: Problem, blocks: set[str]) -> bool:
    """Whether a problem of values taken together touches a block that holds a placeholder."""
    if problem.kind is not ProblemKind.REFUSED_COMBINATION:
        return False
    places = (problem.at.tokens, split_pointer(problem.other or ""))
    return any(place and place[0] in blocks for place in places)


def _note(trail: Trail, text: str, count: int, refused: bool) -> Problem:
    at = ROOT
    for token in trail.tokens:
        at = at.child(token)
    return wording.placeholder(at, text, count, refused=refused)
