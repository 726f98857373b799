"""What the rules of this family share: one schema problem becomes one finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.fact import Origin, OriginKind
from dsguard.model.finding import (
    Because,
    Confidence,
    Consequence,
    Finding,
    Severity,
)
from dsguard.model.tree import dotted
from dsguard.rules.schema._fixes import fix_of
from dsguard.schema.problem import Problem, ProblemKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.model.rule import Reporter

_SEVERITIES = {
    Consequence.REFUSED: Severity.ERROR,
    Consequence.LATE: Severity.ERROR,
    Consequence.DIFFERS: Severity.WARNING,
    Consequence.IGNORED: Severity.WARNING,
    Consequence.NOTE: Severity.INFO,
}


def report_problems(case: Case, report: Reporter, kind: ProblemKind) -> Iterator[Finding]:
    """A finding for each schema problem of this kind, as bad as its consequence."""
    for problem in case.problems:
        if problem.kind is kind:
            yield report_problem(case, report, problem)


def report_problem(
    case: Case,
    report: Reporter,
    problem: Problem,
    help: str = "",
    confidence: Confidence = Confidence.HIGH,
) -> Finding:
    """The finding that a schema problem is; ``help`` replaces the way out that the kind gives."""
    because: tuple[Because, ...] = ()
    if problem.other is not None and case.document is not None:
        node = case.document.get(problem.other)
        if node is not None:
            origin = Origin(OriginKind.CONFIG, case.document.locate(problem.other, "member"))
            because = (Because(dotted(problem.other), node.value, origin),)
    fix = fix_of(case, problem)
    return report(
        case.locate(problem),
        problem.message,
        problem.consequence,
        severity=_SEVERITIES[problem.consequence],
        because=because,
        fix=fix,
        help=help or ("" if fix else _way_out(problem)),
        confidence=confidence,
    )


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
