"""``True``, ``None`` or ``auto,`` without quotes; see unquoted_literal.md."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Edit, Finding, Fix, Safety, Severity
from dsguard.model.placeholder import is_placeholder
from dsguard.model.rule import Reporter, rule
from dsguard.model.source import Location
from dsguard.model.tree import Scalar, shown_name
from dsguard.rules.conditions import Deviates, Weighs
from dsguard.schema.problem import ProblemKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_MEANT = {"true": "true", "false": "false", "none": "null", "null": "null"}
_COMMENT = re.compile(r"(?<=[\s,])(?:#|//|/\*)")

# Names that templates leave to be filled in: GLOBAL_BATCH, ${stage}, <lr>, {{ lr }}, %lr%.
_PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9]*(_\w+)?|[$<{%@].*")


@rule(
    code="DSG005",
    slug="unquoted-literal",
    summary="a literal without quotes that HJSON reads as a string, with its comma",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="hjson.load gives a string",
    when=(Weighs("front_end"), Deviates()),
)
def unquoted_literal(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report bare strings that swallowed a comma or comment, or that look like a literal."""
    if case.document is None or (case.front_end is not None and case.front_end.strict_json):
        return  # a strict reader stops at a string without quotes; not-strict-json says it
    judged = {problem.at.tokens for problem in case.problems}
    # The placeholders of a template are one problem, which stands at the first of them.
    template = any(problem.kind is ProblemKind.PLACEHOLDER for problem in case.problems)
    for trail, scalar in case.document.nodes():
        if not isinstance(scalar, Scalar) or not scalar.bare:
            continue
        text = str(scalar.value)
        core = _without_comma_and_comment(text)
        meant, what = _meaning(core)
        if core == text and not what:
            continue
        if not what and template and is_placeholder(text):
            continue  # unfilled-template tells of it; the number that comes there needs no quotes
        fix = None
        help = "write the number as JSON does"
        if not what and _PLACEHOLDER.fullmatch(core) and (template or trail.tokens in judged):
            help = "if a script fills in this place, check the file that it writes"
        elif meant is not None:
            # "True" alone counts as true wherever DeepSpeed looks, so writing true changes nothing.
            same = core == text and meant == "true"
            fix = Fix(
                f"write {meant}",
                Safety.SAFE if same else Safety.UNSAFE,
                (Edit(scalar.span.start, scalar.span.end, meant + text[len(core) :]),),
            )
        yield report(
            Location(case.document.source, scalar.span, trail.pointer),
            f'this is the string "{shown_name(text)}"{what}: HJSON reads a value without quotes to '
            "the end of the line",
            Consequence.DIFFERS,
            fix=fix,
            help="" if fix else help,
        )


def _without_comma_and_comment(text: str) -> str:
    """A bare string without a comma at its end and a comment set off by white space or a comma."""
    comment = _COMMENT.search(text)
    if comment is not None:
        text = text[: comment.start()].rstrip()
    return text[:-1].rstrip() if text.endswith(",") else text


def _meaning(core: str) -> tuple[str | None, str]:
    """What a bare word was meant to be, as JSON where that is sure, and what it is not."""
    literal = _MEANT.get(core.lower())
    if literal is not None:
        return literal, f", not {literal}"
    try:
        float(core)
    except ValueError:
        return json.dumps(core, ensure_ascii=False), ""
    return None, ", not a number"
