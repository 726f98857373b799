"""Conditions that are certain: comparisons of known words, and tests for what nobody has set.

A script is judged as it is run by itself, so ``[ -z "$1" ]`` holds. What asks for files or
patterns is not decided. Source: Bash Reference Manual, section 6.4.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dsguard.launch.shell.syntax import Block, Case, Negation, Node, RawWord, Simple, Test
from dsguard.launch.shell.text import is_known, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dsguard.launch.shell.expand import Expander

_NUMBER = re.compile(r"[-+]?\d{1,18}")
_PATTERN = re.compile(r"[*?\[\\]")
_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}


def decide_block(block: Block, expander: Expander) -> bool | None:
    """Whether a condition holds; None where that is not certain."""
    if len(block) != 1 or block[0].background:
        return None
    chain = block[0]
    outcome = decide(chain.commands[0], expander)
    for joint, command in zip(chain.joints, chain.commands[1:], strict=True):
        other = decide(command, expander)
        settles = joint == "||"
        if settles in (outcome, other):
            outcome = settles
        elif None in (outcome, other):
            outcome = None
    return outcome


def decide(node: Node, expander: Expander) -> bool | None:
    """Whether one command succeeds; None where that is not certain."""
    if isinstance(node, Negation):
        inner = decide(node.command, expander)
        return None if inner is None else not inner
    if isinstance(node, Test):
        return _test(_whole(node.words, expander), patterns=True) if node.words else None
    if not isinstance(node, Simple) or node.assignments or not node.words:
        return None
    name = node.words[0].plain
    if name in ("true", ":", "false"):
        return name != "false"
    if name not in ("[", "test"):
        return None
    fields = expander.fields(node.words[1:])
    words = [text_of(f.chunks) if is_known(f.chunks) else None for f in fields]
    if name == "[":
        if not words or words[-1] != "]":
            return None
        words.pop()
    return _test(words, patterns=False)


def choose(case: Case, expander: Expander) -> int | None:
    """Which arm of a ``case`` runs, their number where none does; None where it is not certain."""
    (word,) = _whole((case.word,), expander)
    if word is None or case.falls:
        return None
    for at, (patterns, _) in enumerate(case.arms):
        for raw in patterns:
            if raw.plain == "*":
                return at
            (pattern,) = _whole((raw,), expander)
            if pattern is None or _PATTERN.search(pattern):
                return None
            if pattern == word:
                return at
    return len(case.arms)


def _whole(words: Sequence[RawWord], expander: Expander) -> list[str | None]:
    """The words, not split; None for one that is not known."""
    values = [expander.value(word) for word in words]
    return [text_of(value) if is_known(value) else None for value in values]


def _test(words: Sequence[str | None], *, patterns: bool) -> bool | None:
    """``test``; with ``patterns``, the word behind ``==`` may be one."""
    known = [word for word in words if word is not None]
    if len(known) != len(words):
        return None
    if known[:1] == ["!"] and len(known) > 1:
        inner = _test(known[1:], patterns=patterns)
        return None if inner is None else not inner
    if len(known) == 1:
        return known[0] != ""
    if len(known) == 2 and known[0] in ("-z", "-n"):
        return (known[1] == "") is (known[0] == "-z")
    if len(known) != 3:
        return None
    left, operator, right = known
    if operator in _NUMBERS:
        if not _NUMBER.fullmatch(left) or not _NUMBER.fullmatch(right):
            return None
        return _NUMBERS[operator](int(left), int(right))
    if operator not in ("=", "==", "!=") or (patterns and _PATTERN.search(right)):
        return None
    return (left == right) is (operator != "!=")
