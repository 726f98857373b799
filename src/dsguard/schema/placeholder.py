"""Placeholders: values that a script fills in before DeepSpeed reads the config.

A file with placeholders is a template. DeepSpeed refuses it as it is, but nobody gives it to
DeepSpeed as it is, so what stands in their place is unknown and not wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from dsguard.model.finding import Consequence
from dsguard.model.tree import join_pointer, split_pointer
from dsguard.schema import wording
from dsguard.schema.problem import ROOT, Problem, ProblemKind

_MARKED = r"""
    \$ (?: [A-Za-z_]\w* | \{ [^{}]+ \} )   # $BATCH, ${BATCH}
  | \{\{ .+ \}\} | \{% .+ %\}              # {{ batch }}
  | < [^<>|]+ >                            # <fill me>
  | __ [A-Z] [A-Z0-9_]* __                 # __BATCH__
  | % [A-Z] [A-Z0-9_]* %                   # %BATCH%
  | @ [A-Z] [A-Z0-9_]* @                   # @BATCH@
"""
_MARKS = ("$", "{", "<", "__", "%", "@")
"""What each of them starts with. Few texts do, so the pattern is seldom compiled."""

_WORD = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
"""CONFIG_BATCH_SIZE: in capitals, and of more than one part."""

_BARE_WORD = r"[A-Z](?:[A-Z0-9_]|(?<=[0-9])(?:st|nd|rd|th)(?![a-z])){2,}"
"""MBSIZE or CL_1st_MIN, where a comma follows: HJSON reads a word without quotes up to the end
of the line."""

_REAL_WORDS = frozenset(
    {"ADAGRAD", "ADAM", "ADAMW", "AUTO", "BF16", "CPU", "CUDA", "FAIL", "FALSE", "FAST", "FP16"}
    | {"FP32", "GPU", "IGNORE", "INT8", "LAMB", "LION", "MACHINE", "MEAN", "MOCK", "MUON", "NONE"}
    | {"NULL", "NVME", "PYTHON", "REPLICA", "SGD", "SOCKET", "SUM", "TRUE", "WARN"}
)
"""Words in capitals that are meant as values."""


def is_placeholder(value: Any) -> bool:
    """Whether a value stands for one that is filled in later.

    It is a whole string such as ``${BATCH}``, ``{{ batch }}``, ``<fill me>``, ``__BATCH__``,
    ``%BATCH%``, ``@BATCH@`` or ``CONFIG_BATCH_SIZE``, also with the comma that HJSON takes for a
    part of a string without quotes. No value, path or name of a class or optimizer that
    DeepSpeed knows looks like that.
    """
    if not isinstance(value, str):
        return False
    text = value.strip()
    return _is_marked(text) or _is_word(text)


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
    told = [p for p, text in found.items() if p in silenced or _is_marked(text.strip())]
    return [_note(told, found, refused), *kept] if told else kept


def _is_marked(text: str) -> bool:
    mark = text.startswith(_MARKS)
    return mark and re.fullmatch(_MARKED, text.removesuffix(","), re.VERBOSE) is not None


def _is_word(text: str) -> bool:
    word = text.removesuffix(",")
    if word == text and not ("_" in word and word.isupper()):
        return False  # the pattern needs both, and most texts need no pattern
    pattern = _WORD if word == text else _BARE_WORD
    return re.fullmatch(pattern, word) is not None and word not in _REAL_WORDS


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
