"""A key written twice in one object; see duplicate_key.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.fact import Origin, OriginKind
from dsguard.model.finding import Because, Consequence, Finding, Fix, Safety, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.model.source import Location
from dsguard.model.tree import (
    Document,
    Member,
    Node,
    Object,
    join_pointer,
    same_value,
    shown_name,
)
from dsguard.reading.editing import remove_member
from dsguard.rules.conditions import Repeats, Weighs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG003",
    slug="duplicate-key",
    summary="a key is written twice in one object",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="raises ValueError: Duplicate keys in DeepSpeed config",
    when=(Weighs("front_end"), Repeats()),
)
def duplicate_key(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report each repetition, with the first one as the reason."""
    document = case.document
    if document is None:
        return
    if case.front_end is None:
        outcome = "DeepSpeed refuses the file, and a trainer silently takes the last one"
    elif case.front_end.strict_json:
        outcome = f"{case.front_end.title} silently takes the last one"
    else:
        outcome = "DeepSpeed refuses the file"
    refused = case.front_end is not None and not case.front_end.strict_json
    for trail, node in document.objects():
        alike: dict[str, bool] | None = None
        for first, again in node.duplicates():
            alike = _alike(node) if alike is None else alike
            pointer, name = join_pointer(trail.pointer, again.key), shown_name(again.key)
            line, _ = document.source.position(first.key_span.start)
            before = Location(document.source, first.node.span, pointer)
            yield report(
                Location(document.source, again.key_span, pointer),
                f"{name} is already written on line {line}; {outcome}",
                Consequence.REFUSED if refused else Consequence.DIFFERS,
                because=(Because(name, first.node.value, Origin(OriginKind.CONFIG, before)),),
                fix=_without(document, node, again) if alike[again.key] else None,
                help=f"keep one {name}",
            )


def _alike(node: Object) -> dict[str, bool]:
    """Whether all members of a key say the same, by key."""
    first: dict[str, Node] = {}
    alike: dict[str, bool] = {}
    for member in node.members:
        before = first.setdefault(member.key, member.node)
        same = before is member.node or same_value(before, member.node)
        alike[member.key] = alike.get(member.key, True) and same
    return alike


def _without(document: Document, parent: Object, again: Member) -> Fix | None:
    """Take out a repetition that says the same."""
    edits = remove_member(document, parent, again)
    if edits is None:
        return None
    return Fix("remove it, as it says the same", Safety.SAFE, edits)
