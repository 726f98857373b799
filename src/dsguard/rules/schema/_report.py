"""What the rules of this family share: one schema problem becomes one finding."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from dsguard.facts.case import Case
from dsguard.model.fact import Origin, OriginKind
from dsguard.model.finding import (
    Because,
    Consequence,
    Edit,
    Finding,
    Fix,
    Safety,
    Severity,
)
from dsguard.model.rule import Reporter
from dsguard.model.tree import dotted
from dsguard.schema.keys import find
from dsguard.schema.problem import Problem, ProblemKind

_SEVERITIES = {
    Consequence.REFUSED: Severity.ERROR,
    Consequence.LATE: Severity.ERROR,
    Consequence.DIFFERS: Severity.WARNING,
    Consequence.IGNORED: Severity.WARNING,
    Consequence.NOTE: Severity.INFO,
}

_SURE = 0.85
"""How much alike two names are before one of them is taken for a slip of the other."""

_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def report_problems(case: Case, report: Reporter, kind: ProblemKind) -> Iterator[Finding]:
    """A finding for each schema problem of this kind, as bad as its consequence."""
    for problem in case.problems:
        if problem.kind is kind:
            yield report_problem(case, report, problem)


def report_problem(case: Case, report: Reporter, problem: Problem, help: str = "") -> Finding:
    """The finding that a schema problem is; ``help`` replaces the way out that the kind gives."""
    because: tuple[Because, ...] = ()
    if problem.other is not None and case.document is not None:
        node = case.document.get(problem.other)
        if node is not None:
            origin = Origin(OriginKind.CONFIG, case.document.locate(problem.other, "member"))
            because = (Because(dotted(problem.other), node.value, origin),)
    fix = _rename(case, problem) or _retype(case, problem)
    return report(
        case.locate(problem),
        problem.message,
        problem.consequence,
        severity=_SEVERITIES[problem.consequence],
        because=because,
        fix=fix,
        help=help or ("" if fix else _way_out(problem)),
    )


def _rename(case: Case, problem: Problem) -> Fix | None:
    """Spell a key right where one spelling is meant and its place in the block is free."""
    if problem.kind is not ProblemKind.UNKNOWN_KEY or len(problem.suggestions) != 1:
        return None
    (name,) = problem.suggestions
    parent, _, written = problem.pointer.rpartition("/")
    if problem.belongs or case.document is None or case.document.get(f"{parent}/{name}"):
        return None
    if SequenceMatcher(None, written, name).ratio() < _SURE:
        return None
    span = case.document.locate(problem.pointer, "key").span
    edit = Edit(span.start, span.end, json.dumps(name))
    # A key that DeepSpeed ignored so far starts to count once it is spelled right.
    return Fix(f"rename it to {name}", Safety.UNSAFE, (edit,))


def _retype(case: Case, problem: Problem) -> Fix | None:
    """Write a value in the type that is taken, where the text or switch leaves no doubt."""
    if problem.kind is not ProblemKind.MISTYPED_VALUE:
        return None
    if isinstance(problem.value, str):
        written = _literal(problem.value.strip(), problem.expected)
    elif problem.value in (True, False) and find(f"{problem.pointer}/enabled"):
        written = json.dumps({"enabled": problem.value})
    else:
        written = None
    if written is None:
        return None
    span = case.locate(problem).span
    # Where DeepSpeed stops over the value so far, there is no training that would change.
    stops = problem.consequence in (Consequence.REFUSED, Consequence.LATE)
    safety = Safety.SAFE if stops else Safety.UNSAFE
    return Fix(f"write {written}", safety, (Edit(span.start, span.end, written),))


def _literal(text: str, expected: str) -> str | None:
    """The number or switch that a text spells, as JSON, if that is what is expected."""
    if "true or false" in expected and text.lower() in ("true", "false"):
        return text.lower()
    if "number" not in expected:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    if "whole number" in expected:
        return str(int(number)) if number.is_integer() else None
    if not math.isfinite(number):
        return None
    return text if _JSON_NUMBER.fullmatch(text) else repr(number)


def _way_out(problem: Problem) -> str:
    kind = problem.kind
    if kind is ProblemKind.MISPLACED_KEY:
        return "move it " + _where(problem)
    if problem.suggestions:
        meant = " or ".join(problem.suggestions)
        return f"did you mean {meant}{' ' + _where(problem) if problem.belongs else ''}?"
    if kind is ProblemKind.UNKNOWN_KEY:
        if problem.consequence is Consequence.REFUSED:
            return "remove it"
        return 'remove it, or begin its name with "_" to keep it as a remark'
    if kind is ProblemKind.TOO_NEW_KEY:
        return "remove it, or run a newer DeepSpeed"
    if kind is ProblemKind.REMOVED_KEY:
        return f"remove it; use {problem.replacement}" if problem.replacement else "remove it"
    if kind is ProblemKind.CONFLICTING_KEYS:
        return f"keep only {problem.replacement}" if problem.replacement else "keep one of the two"
    if problem.replacement:
        return f"use {problem.replacement}"
    if problem.expected and kind in (ProblemKind.MISTYPED_VALUE, ProblemKind.OUT_OF_RANGE_VALUE):
        return f"write {problem.expected}"
    return ""


def _where(problem: Problem) -> str:
    """The blocks where a key is known, in words; the empty path is the whole config."""
    return " or ".join(
        f"under {block}" if block else "to the top level" for block in problem.belongs
    )
