"""A document that is a list or a bare value; see not_an_object.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.model.source import Location
from dsguard.model.tree import Array, Object
from dsguard.rules.conditions import Listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG006",
    slug="not-an-object",
    summary="the document is not an object of settings",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="raises AttributeError or TypeError",
    when=(Listed(),),
)
def not_an_object(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report a document whose root is no object."""
    if case.document is None or isinstance(case.document.root, Object):
        return
    root = case.document.root
    kind = "a list" if isinstance(root, Array) else "a single value"
    yield report(
        Location(case.document.source, root.span, ""),
        f"the document is {kind}; a DeepSpeed config is an object with keys such as "
        "train_batch_size",
        Consequence.REFUSED,
    )
