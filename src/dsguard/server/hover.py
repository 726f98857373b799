"""What an editor shows over a key: its meaning, values and history, from the schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dsguard.model.tree import Document, Member, Trail, join_pointer
from dsguard.schema.history import OLDEST_KNOWN
from dsguard.schema.keys import KeyInfo, find

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.version import Version

    from dsguard.model.source import Span


def key_at(document: Document, offset: int) -> tuple[str, Span] | None:
    """The pointer and the span of the innermost key whose member holds an offset."""
    found: tuple[Trail, Member] | None = None
    for trail, holder in document.objects():
        for member in holder.members:
            if member.span.start <= offset < member.span.end:
                found = trail, member
    if found is None:
        return None
    trail, member = found
    return join_pointer(trail.pointer, member.key), member.key_span


def explain_key(pointer: str, release: Version) -> str | None:
    """The key at a pointer in Markdown, None where no release of DeepSpeed knows it."""
    info = find(pointer)
    return None if info is None else "\n\n".join(_paragraphs(info, release))


def _paragraphs(info: KeyInfo, release: Version) -> Iterator[str]:
    yield f"**{info.dotted}**"
    if info.doc:
        yield info.doc
    form = info.form_in(release)
    if form.present:
        default = _default(form.default)
        yield f"Takes {form.type}." + (f" Default: `{default}`." if default else "")
    else:
        yield f"DeepSpeed {release} does not read it."
    if info.deprecated is not None:
        use = f"; use {info.replaced_by}" if info.replaced_by else ""
        yield f"Deprecated{use}."
    if info.since > OLDEST_KNOWN:
        yield f"Since DeepSpeed {info.since}."
    if info.removed is not None:
        yield f"Removed in DeepSpeed {info.removed}."


def _default(value: object) -> str:
    try:
        return "" if value is None else json.dumps(value)
    except TypeError:
        return str(value)
