"""What differs between two run contracts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from dsguard.model.fact import FACT_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dsguard.facts.contract import Contract


class Difference(Struct, frozen=True):
    """One thing that is not the same.

    ``kind`` says what ``name`` is: a fact, a file or a package. ``before`` and ``after`` are the
    values, None where there is none; ``said_before`` and ``said_after`` who gave them, or why the
    value is not known.
    """

    kind: Literal["fact", "file", "package"]
    name: str
    before: Any
    after: Any
    said_before: str = ""
    said_after: str = ""


def compare(before: Contract, after: Contract) -> tuple[Difference, ...]:
    """Facts in their usual order, then files whose content changed, then packages.

    A value that two runs share is the same whoever gave it.
    """
    return (
        *_facts(before, after),
        *_entries("file", before.inputs, after.inputs),
        *_entries("package", before.packages, after.packages),
    )


def _facts(before: Contract, after: Contract) -> Iterator[Difference]:
    for name in FACT_NAMES:
        one, other = before.facts.get(name), after.facts.get(name)
        old, new = (None if fact is None else fact.value for fact in (one, other))
        if (one is None) is (other is None) and old == new:
            continue
        said_before = before.unknown.get(name, "") if one is None else one.origin.describe()
        said_after = after.unknown.get(name, "") if other is None else other.origin.describe()
        yield Difference("fact", name, old, new, said_before, said_after)


def _entries(
    kind: Literal["file", "package"], before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[Difference]:
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield Difference(kind, name, before.get(name), after.get(name))
