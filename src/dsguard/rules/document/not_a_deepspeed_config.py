"""A JSON file of another kind; see not_a_deepspeed_config.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.model.tree import Object
from dsguard.rules.conditions import Given, Without
from dsguard.schema.keys import find
from dsguard.schema.names import is_comment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG007",
    slug="not-a-deepspeed-config",
    summary="the file does not look like a DeepSpeed config",
    severity=Severity.WARNING,
    since="0.1.0",
    when=(Given("document"), Without("recognised")),
)
def not_a_deepspeed_config(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report a document that was given to dsguard but is something else."""
    if case.document is None or case.recognised:
        return
    root = case.document.root
    if not isinstance(root, Object):
        return
    keys = [key for key in root.value if not is_comment(key)] or list(root.value)
    known = [key for key in keys if find(key) is not None]
    if known:
        evidence = f"of DeepSpeed's keys it has only {_few(known)}"
    else:
        evidence = f"DeepSpeed reads none of its keys ({_few(keys)})"
    yield report(
        case.document.start,
        "this does not look like a DeepSpeed config, so nothing else was checked: " + evidence,
        Consequence.NOTE,
        confidence=Confidence.MEDIUM,
        help="check the file that the launch passes as --deepspeed_config or --deepspeed; with the "
        "launch command after --, a file of any look is checked",
    )


def _few(keys: list[str]) -> str:
    """At most three keys by name; several of them end with "and"."""
    *others, last = keys if len(keys) <= 3 else [*keys[:3], f"{len(keys) - 3} more"]
    return f"{', '.join(others)} and {last}" if others else last
