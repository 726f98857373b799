"""What the rules of this family share."""

from __future__ import annotations

from dsguard.facts.case import Case
from dsguard.frontends.base import FrontEndName
from dsguard.model.tree import Document, Object


def read_by(case: Case, *names: FrontEndName) -> Document | None:
    """The document, if it is an object and one of these front ends reads it."""
    if case.document is None or not isinstance(case.document.root, Object):
        return None
    if case.front_end is None or case.front_end.name not in names:
        return None
    return case.document
