"""What DeepSpeed says to a config: refused, ignored, or read otherwise than written.

Everything is judged here that does not depend on the world size or the batch equation.
"""

from __future__ import annotations

from typing import Any

from packaging.version import Version

from dsguard.schema.compiling import compiles
from dsguard.schema.config import Config
from dsguard.schema.effect import without_effect
from dsguard.schema.failing import fails_together
from dsguard.schema.folding import folds_experts
from dsguard.schema.judge import Judge
from dsguard.schema.problem import ROOT, Place, Problem
from dsguard.schema.releases import as_of
from dsguard.schema.template import judged_as_template
from dsguard.schema.together import refused_together
from dsguard.schema.whole import Whole

_ACROSS_BLOCKS = (refused_together, fails_together, folds_experts, compiles, without_effect)


def validate(value: dict[str, Any], target: Version) -> list[Problem]:
    """The problems of a config for a release of DeepSpeed, in the order of the config.

    ``value`` is the config as plain Python values. Everything is judged as that release judges it:
    which keys exist, which blocks refuse unknown ones, and which values are taken. For a release
    that is newer than those known, unknown keys are never called refused. Placeholders of a
    template are not judged. Never raises for any JSON value.
    """
    judge = Judge(target)
    judge.unchecked(as_of(Config, target), value, ROOT)
    whole = Whole(value, judge.blocks, target)
    for across in _ACROSS_BLOCKS:
        judge.problems.extend(across(whole))
    problems = judged_as_template(value, judge.problems)
    order = _Order(value)
    return sorted(problems, key=lambda p: (order.position(p.at), p.part != "key"))


class _Order:
    """The order of a config; the members of an object are numbered once for all its problems."""

    def __init__(self, value: dict[str, Any]) -> None:
        self._value = value
        self._numbers: dict[int, dict[str, int]] = {}

    def position(self, at: Place) -> tuple[int, ...]:
        """The number of each member on the way to a place."""
        position = []
        value: Any = self._value
        for token in at.tokens:
            if isinstance(value, dict) and token in value:
                numbers = self._numbers.get(id(value))
                if numbers is None:
                    numbers = {key: number for number, key in enumerate(value)}
                    self._numbers[id(value)] = numbers
                position.append(numbers[token])
                value = value[token]
            elif isinstance(value, list):
                position.append(int(token))
                value = value[int(token)]
        return tuple(position)
